//! Q7: where the facts say so, one waiting message stands for all with its key. Elsewhere keys are
//! ignored, which is tried instead.

use flare_core::port::{Outgoing, Queue};

use super::bench::{lane, payloads};
use crate::Subject;

fn keyed(payload: &'static str, key: &str) -> Outgoing {
    Outgoing::new(payload).coalesce(key)
}

/// A second message with the key of a waiting one is not received beside it.
pub async fn q7_a_waiting_message_absorbs_its_equal(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [keyed("a", "k"), keyed("b", "k")]).await;
    subject.put(&queue, [keyed("c", "k")]).await;
    if subject.facts().coalesces {
        assert_eq!(subject.next(&queue, subject.long()).await.payload, "a");
        subject.nothing_for(&queue, 3).await;
    } else {
        let all = subject.collect(&queue, 3, subject.long()).await;
        assert_eq!(payloads(&all), ["a", "b", "c"], "keys are ignored");
    }
}

/// Messages with other keys, or none, are all received.
pub async fn q7_only_equal_keys_are_absorbed(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let messages = [
        keyed("a", "k"),
        keyed("b", "K"),
        keyed("c", "k2"),
        keyed("d", ""),
        Outgoing::new("e"),
        Outgoing::new("f"),
    ];
    subject.put(&queue, messages).await;
    let all = subject.collect(&queue, 6, subject.long()).await;
    assert_eq!(payloads(&all), ["a", "b", "c", "d", "e", "f"]);
}

/// Whichever of the two was due earlier, the message is received at that time.
pub async fn q7_the_earlier_time_holds(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let long = subject.long();
    subject.put(&queue, [keyed("a", "later first").delay(long)]).await;
    subject.put(&queue, [keyed("a", "later first")]).await;
    subject.put(&queue, [keyed("b", "sooner first")]).await;
    subject.put(&queue, [keyed("b", "sooner first").delay(long)]).await;
    let both = subject.collect(&queue, 2, long).await;
    assert_eq!(payloads(&both), ["a", "b"]);
}

/// A message in flight absorbs nothing: what it stands for may have been read already.
pub async fn q7_nothing_is_absorbed_in_flight(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [keyed("a", "k")]).await;
    let _flying = subject.next(&queue, subject.long()).await;
    subject.put(&queue, [keyed("b", "k")]).await;
    assert_eq!(subject.next(&queue, subject.long()).await.payload, "b");
}

/// A message waiting in one queue absorbs nothing sent to another.
pub async fn q7_queues_absorb_apart(subject: Subject<dyn Queue>) {
    let (one, other) = (subject.queue().await, lane(3));
    subject.make(&other).await;
    subject.put(&one, [keyed("a", "k")]).await;
    subject.put(&other, [keyed("b", "k")]).await;
    assert_eq!(subject.next(&other, subject.long()).await.payload, "b");
}
