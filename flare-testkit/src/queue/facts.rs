//! Q11: what goes beyond the backend's facts is refused as a whole. A limit too high to be reached
//! in a test (64 MiB, 10,000 messages, a delay without end) is taken at its word.

use flare_core::ErrorKind;
use flare_core::port::{Outgoing, Queue};

use super::bench::{kind, numbered};
use crate::Subject;

/// More than this is not allocated for a test.
pub(super) const MOST_BYTES: usize = 64 << 20;
const MOST_MESSAGES: usize = 10_000;

/// A payload beyond the limit is too large; the others of its batch are sent.
pub async fn q11_a_payload_too_large_is_refused(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let facts = subject.facts();
    if facts.max_payload > MOST_BYTES || facts.max_batch < 2 {
        return;
    }
    let huge = Outgoing::new(vec![b'x'; facts.max_payload + 1]);
    let results = subject.send(&queue, vec![huge, Outgoing::new("fits")]).await;
    let kinds: Vec<_> = results.into_iter().map(kind).collect();
    assert_eq!(kinds, [Some(ErrorKind::TooLarge), None]);
    assert_eq!(subject.next(&queue, subject.long()).await.payload, "fits");
    subject.nothing_for(&queue, 2).await;
}

/// A delay beyond the limit is invalid; the others of its batch are sent.
pub async fn q11_a_delay_too_long_is_refused(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let facts = subject.facts();
    let Some(delay) = facts.max_delay.checked_add(subject.ticks(1)) else { return };
    if facts.max_batch < 2 {
        return;
    }
    let late = Outgoing::new("late").delay(delay);
    let results = subject.send(&queue, vec![late, Outgoing::new("now")]).await;
    let kinds: Vec<_> = results.into_iter().map(kind).collect();
    assert_eq!(kinds, [Some(ErrorKind::Invalid), None]);
    assert_eq!(subject.next(&queue, subject.long()).await.payload, "now");
    subject.nothing_for(&queue, 2).await;
}

/// A batch beyond the limit is invalid, and nothing of it is sent.
pub async fn q11_a_batch_too_large_is_refused(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let batch = subject.facts().max_batch;
    if batch > MOST_MESSAGES {
        return;
    }
    let results = subject.send(&queue, numbered(batch + 1).collect()).await;
    assert_eq!(results.len(), batch + 1, "one result per message");
    for result in results {
        assert_eq!(kind(result), Some(ErrorKind::Invalid));
    }
    subject.nothing_for(&queue, 2).await;
}
