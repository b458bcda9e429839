//! L2 and L3: every write has its place in one history, and conditions decide who makes it.

use std::sync::Arc;

use flare_core::port::{Expect, Lease, Write, Written};
use futures::future::join_all;

use super::bench::made;
use crate::Subject;

/// Writers that race.
const WRITERS: usize = 8;

/// Writes, deletes and re-creations of any keys get ever greater revisions.
pub async fn l2_revisions_grow_over_all_keys(subject: Subject<dyn Lease>) {
    let mut revisions = Vec::new();
    for round in 0..3 {
        let value = round.to_string();
        revisions.push(subject.put("l2/a", &value).await);
        revisions.push(subject.put("l2/b", &value).await);
        revisions.push(subject.remove("l2/a").await);
    }
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?} do not strictly increase");
}

/// A write that changes nothing is a write: whoever made it holds a new token.
pub async fn l2_writing_the_same_again_is_a_write(subject: Subject<dyn Lease>) {
    let first = subject.put("l2/same", "same").await;
    let second = subject.put("l2/same", "same").await;
    assert!(second > first, "{second:?} after {first:?}");
    assert_eq!(subject.read("l2/same").await.expect("it was written").revision, second);
}

/// A key tells which revisions created it and last wrote it, anew after its deletion.
pub async fn l2_a_key_remembers_its_revisions(subject: Subject<dyn Lease>) {
    for round in 0..2 {
        let created = subject.put("l2/key", &format!("{round} created")).await;
        let written = subject.put("l2/key", &format!("{round} written")).await;
        let entry = subject.read("l2/key").await.expect("it was written");
        assert_eq!((entry.created, entry.revision), (created, written));
        subject.remove("l2/key").await;
    }
}

/// Of any number of writers that expect a key to be absent, one creates it.
pub async fn l3_of_many_that_expect_absence_one_wins(subject: Subject<dyn Lease>) {
    race(&subject, "l3/together", Expect::Absent).await;
    race_on_threads(&subject, "l3/apart", Expect::Absent).await;
}

/// Of any number of writers that expect the same revision, one replaces it.
pub async fn l3_of_many_that_expect_a_revision_one_wins(subject: Subject<dyn Lease>) {
    let revision = subject.put("l3/together", "old").await;
    race(&subject, "l3/together", Expect::At(revision)).await;
    let revision = subject.put("l3/apart", "old").await;
    race_on_threads(&subject, "l3/apart", Expect::At(revision)).await;
}

fn attempt(key: &str, writer: usize, expect: Expect) -> Write {
    Write::new(key, format!("writer {writer}")).expect(expect)
}

/// In one task: whatever waits between its check and its write lets all others check.
async fn race(subject: &Subject<dyn Lease>, key: &str, expect: Expect) {
    let writes = (0..WRITERS).map(|writer| subject.write(attempt(key, writer, expect)));
    let results = join_all(writes).await;
    one_won(subject, key, results.into_iter().map(|result| result.expect("it is answered"))).await;
}

/// On several threads, as far as the runtime has them.
async fn race_on_threads(subject: &Subject<dyn Lease>, key: &str, expect: Expect) {
    let tasks = (0..WRITERS).map(|writer| {
        let (port, write) = (Arc::clone(&subject.port()), attempt(key, writer, expect));
        tokio::spawn(async move { port.write(write).await })
    });
    let results = join_all(tasks).await.into_iter();
    let results = results.map(|task| task.expect("no panic").expect("it is answered"));
    one_won(subject, key, results).await;
}

async fn one_won(subject: &Subject<dyn Lease>, key: &str, results: impl Iterator<Item = Written>) {
    let there = subject.read(key).await;
    let mut winners = 0;
    for result in results {
        match result {
            Written::At(revision) => {
                winners += 1;
                assert_eq!(Some(revision), there.as_ref().map(|entry| entry.revision));
            }
            Written::Conflict(found) => assert_eq!(found, there, "losers learn what is there"),
        }
    }
    assert_eq!(winners, 1, "of {WRITERS} writers");
}

/// Who loses learns what is there, also that nothing is.
pub async fn l3_a_conflict_tells_what_is_there(subject: Subject<dyn Lease>) {
    let old = subject.put("l3/key", "old").await;
    subject.put("l3/key", "new").await;
    let there = subject.read("l3/key").await;
    for expect in [Expect::Absent, Expect::At(old)] {
        let result = subject.write(Write::new("l3/key", "mine").expect(expect)).await;
        assert_eq!(result.expect("it is answered"), Written::Conflict(there.clone()));
    }
    assert_eq!(subject.read("l3/key").await, there, "a conflict changes nothing");
    let result = subject.write(Write::new("l3/none", "mine").expect(Expect::At(old))).await;
    assert_eq!(result.expect("it is answered"), Written::Conflict(None));
    assert_eq!(subject.read("l3/none").await, None);
}

/// A delete that expects another revision deletes nothing.
pub async fn l3_a_delete_is_conditional_too(subject: Subject<dyn Lease>) {
    let old = subject.put("l3/key", "old").await;
    let new = subject.put("l3/key", "new").await;
    let there = subject.read("l3/key").await;
    let result = subject.delete("l3/key", Expect::At(old)).await.expect("it is answered");
    assert_eq!(result, Written::Conflict(there.clone()));
    assert_eq!(subject.read("l3/key").await, there);
    made(subject.delete("l3/key", Expect::At(new)).await.expect("it is answered"));
    assert_eq!(subject.read("l3/key").await, None);
}
