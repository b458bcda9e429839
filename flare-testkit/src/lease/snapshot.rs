//! L6: a list is the store as it was at one point in history.

use std::collections::BTreeMap;

use bytes::Bytes;
use flare_core::port::{Lease, StoreRevision};
use tokio::task::yield_now;

use crate::Subject;

/// Entries come in the order of their keys' bytes.
pub async fn l6_entries_are_in_key_order(subject: Subject<dyn Lease>) {
    let keys = ["l6/b", "l6/a/z", "l6/ä", "l6/a", "l6/B", "l6/a.", "l6/10", "l6/9"];
    for key in keys {
        subject.put(key, "here").await;
    }
    let listed = subject.list("l6/").await.expect("keys can be listed").entries;
    let listed: Vec<_> = listed.into_iter().map(|entry| entry.key).collect();
    let mut sorted = keys.map(String::from);
    sorted.sort();
    assert_eq!(listed, sorted);
}

/// What a list gives is what was there at the revision it names, whatever is written meanwhile.
pub async fn l6_a_list_is_a_snapshot(subject: Subject<dyn Lease>) {
    const ROUNDS: usize = 40;
    let writing = async {
        let mut log: Vec<(StoreRevision, String, Bytes)> = Vec::new();
        for round in 0..ROUNDS {
            let (key, value) = (format!("l6/{}", round % 3), round.to_string());
            log.push((subject.put(&key, &value).await, key, Bytes::from(value)));
            yield_now().await;
        }
        log
    };
    let listing = async {
        let mut snapshots = Vec::new();
        for round in 0..ROUNDS {
            snapshots.push(subject.list("l6/").await.expect("keys can be listed"));
            // Out of step with the writes, so that some fall into the middle of a list.
            for _ in 0..round % 3 {
                yield_now().await;
            }
        }
        snapshots
    };
    let (log, snapshots) = tokio::join!(writing, listing);
    for snapshot in snapshots {
        let before = log.iter().filter(|(at, _, _)| *at <= snapshot.revision);
        let expected = before.map(|(_, key, value)| (key.clone(), value.clone()));
        let listed = snapshot.entries.into_iter().map(|entry| (entry.key, entry.value));
        let (listed, expected) = (BTreeMap::from_iter(listed), BTreeMap::from_iter(expected));
        assert_eq!(listed, expected, "at {:?}", snapshot.revision);
    }
}

/// A key that was deleted before is in no list.
pub async fn l6_what_is_deleted_is_not_listed(subject: Subject<dyn Lease>) {
    subject.put("l6/a", "stays").await;
    subject.put("l6/b", "goes").await;
    let before = subject.list("l6/").await.expect("keys can be listed");
    subject.remove("l6/b").await;
    let after = subject.list("l6/").await.expect("keys can be listed");
    assert_eq!((before.entries.len(), after.entries.len()), (2, 1));
    assert!(after.revision > before.revision, "{:?} is not later", after.revision);
}
