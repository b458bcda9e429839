//! Q8: how long a receive waits, and how much it gives.

use flare_core::port::{Outgoing, Queue, Receive};

use super::bench::{PATIENCE, numbered};
use crate::Subject;

/// With nothing there, a receive waits as long as it was asked to, and returns empty-handed.
pub async fn q8_an_empty_queue_makes_it_wait(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let request = Receive::new(1, subject.long()).wait(subject.ticks(4));
    let received = subject.timed(4 + PATIENCE, subject.receive(&queue, request)).await;
    let (messages, ticks) = received.expect("the wait ends");
    assert!(messages.expect("an empty queue can be read").is_empty());
    assert!(ticks >= 2, "returned after {ticks} of 4 ticks");
}

/// A message sent during the wait ends it.
pub async fn q8_an_arrival_ends_the_wait(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let request = Receive::new(1, subject.long()).wait(subject.ticks(18));
    let receive = subject.timed(14, subject.receive(&queue, request));
    let send = async {
        // In the middle of the wait: the time that passes is the receive's.
        subject.pass_ticks(2).await;
        subject.put(&queue, [Outgoing::new("here")]).await;
    };
    let (received, ()) = tokio::join!(receive, send);
    let (messages, _) = received.expect("an arrival ends the wait");
    assert_eq!(messages.expect("the queue can be read")[0].payload, "here");
}

/// A message that becomes visible during the wait ends it.
pub async fn q8_becoming_visible_ends_the_wait(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("later").delay(subject.ticks(4))]).await;
    let request = Receive::new(1, subject.long()).wait(subject.ticks(18));
    let received = subject.within(14, subject.receive(&queue, request)).await;
    let messages = received.expect("what becomes visible ends the wait");
    assert_eq!(messages.expect("the queue can be read")[0].payload, "later");
}

/// A receive gives no more than was asked for, and no more than the backend's batch.
pub async fn q8_no_more_than_asked_for(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let batch = subject.facts().max_batch;
    subject.put(&queue, numbered(batch.min(1000) + 3)).await;
    let one = subject.poll(&queue, 1, subject.long()).await;
    assert!(one.len() <= 1, "{} messages for max 1", one.len());
    let many = subject.poll(&queue, batch.saturating_add(1), subject.long()).await;
    assert!(many.len() <= batch, "{} messages, a batch is {batch}", many.len());
}
