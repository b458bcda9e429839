//! L8: a watch has no gaps. Where a fixture does not say how much history its store keeps, a long one is made:
//! it is given whole, or the watch ends with *compacted*. Where it says, twice as much is made, and a watch from
//! before it has to end.

use std::collections::BTreeSet;

use flare_core::ErrorKind;
use flare_core::port::{KeyEvent, Lease, Scan, StoreRevision};
use futures::StreamExt;
use futures::future::join_all;

use super::bench::PATIENCE;
use crate::Subject;

/// Changes made on a store of which nothing is known; more than one that keeps little keeps.
const CHANGES: usize = 12_000;
/// Changes made at the same time.
const AT_ONCE: usize = 50;

/// A watch that resumes from far back.
pub async fn l8_no_gap_over_a_long_history(subject: Subject<dyn Lease>) {
    let from = subject.revision().await;
    let made = make(&subject).await;
    let whole = whole_or_compacted(&subject, subject.watch("l8/", from), made).await;
    assert!(!whole || subject.history().is_none(), "the store keeps more than its fixture says");
}

/// A watch that was opened in time but is read far too late.
pub async fn l8_no_gap_for_a_slow_watcher(subject: Subject<dyn Lease>) {
    let mut watch = subject.watch("l8/", subject.revision().await);
    let first = subject.put("l8/0", "first").await;
    let event = subject.event(&mut watch, PATIENCE).await;
    assert_eq!(event.revision, first);
    let made = make(&subject).await;
    whole_or_compacted(&subject, watch, made).await;
}

async fn make(subject: &Subject<dyn Lease>) -> BTreeSet<StoreRevision> {
    let mut made = BTreeSet::new();
    let changes = subject.history().map_or(CHANGES, |kept| (2 * kept).next_multiple_of(AT_ONCE));
    for round in 0..changes / AT_ONCE {
        let value = round.to_string();
        let keys: Vec<_> = (0..AT_ONCE).map(|key| format!("l8/{key}")).collect();
        made.extend(join_all(keys.iter().map(|key| subject.put(key, &value))).await);
    }
    assert_eq!(made.len(), changes, "every change has a revision of its own");
    made
}

/// Up to an end with *compacted*, no change may be missing; whether it was not compacted.
async fn whole_or_compacted(
    subject: &Subject<dyn Lease>,
    mut watch: Scan<'static, KeyEvent>,
    made: BTreeSet<StoreRevision>,
) -> bool {
    for revision in made {
        loop {
            let event = subject.within(PATIENCE, watch.next()).await;
            match event.expect("a watch gives all there is").expect("a watch goes on") {
                // What it gave before is clause 7's.
                Ok(event) if event.revision < revision => {}
                Ok(event) => {
                    assert_eq!(event.revision, revision, "there is a gap");
                    break;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Compacted, "{error}");
                    assert!(watch.next().await.is_none(), "a compacted watch has ended");
                    return false;
                }
            }
        }
    }
    true
}
