//! Q1, Q2, Q6 and Q12: what is sent is received until it is settled, by whoever has it.

use std::time::Duration;

use flare_core::port::{Outgoing, Queue, Settlement};
use futures::future::join_all;

use super::bench::{AGAIN, PATIENCE, numbered, payloads};
use crate::Subject;

/// Everything in a batch is received by somebody.
pub async fn q1_what_is_sent_is_received(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, numbered(25)).await;
    let messages = subject.collect(&queue, 25, subject.long()).await;
    let mut sent: Vec<_> = numbered(25).map(|message| message.payload).collect();
    sent.sort();
    assert_eq!(payloads(&messages), sent);
}

/// However often its visibility ends without settlement, it is received again.
pub async fn q1_it_comes_back_until_it_is_settled(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("again")]).await;
    for _ in 0..5 {
        let message = subject.next(&queue, subject.ticks(1)).await;
        assert_eq!(message.payload, "again");
    }
}

/// What several receivers take at the same time is together all there is.
pub async fn q1_receivers_share_without_losing(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, numbered(20)).await;
    let mut messages = Vec::new();
    for _ in 0..=PATIENCE {
        let polls = (0..4).map(|_| subject.poll(&queue, 5, subject.long()));
        messages.extend(join_all(polls).await.into_iter().flatten());
        if messages.len() >= 20 {
            break;
        }
        subject.pass_ticks(1).await;
    }
    let mut received = payloads(&messages);
    received.dedup();
    assert_eq!(received.len(), 20, "all messages are received by somebody");
}

/// A message settled as done does not come back, not even once its visibility would have ended.
pub async fn q2_done_is_never_seen_again(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("done")]).await;
    let message = subject.next(&queue, subject.ticks(3)).await;
    subject.finish(&queue, message.receipt, Settlement::Done).await;
    subject.nothing_for(&queue, 6).await;
}

/// Settling some of what was received settles those and no others.
pub async fn q2_each_of_a_batch_is_done_by_itself(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, numbered(4)).await;
    let mut messages = subject.collect(&queue, 4, subject.long()).await;
    messages.sort_by(|a, b| a.payload.cmp(&b.payload));
    let settlements = messages.into_iter().enumerate().map(|(number, message)| {
        (message.receipt, if number % 2 == 0 { Settlement::Done } else { AGAIN })
    });
    for result in subject.settle(&queue, settlements.collect()).await {
        result.expect("a good receipt can be settled");
    }
    let back = subject.collect(&queue, 2, subject.long()).await;
    assert_eq!(payloads(&back), ["1", "3"]);
    subject.nothing_for(&queue, 4).await;
}

/// A receipt whose message somebody else has by now settles nothing, and comes back.
pub async fn q6_a_stale_receipt_is_lost(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("mine")]).await;
    let mine = subject.next(&queue, subject.ticks(1)).await;
    subject.pass_ticks(2).await;
    let theirs = subject.next(&queue, subject.long()).await;
    subject.refused(&queue, mine.receipt, Settlement::Done).await;
    subject.finish(&queue, theirs.receipt, AGAIN).await;
}

/// A stale receipt cannot take a message away from whoever has it now.
pub async fn q6_a_stale_retry_changes_nothing(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("mine")]).await;
    let mine = subject.next(&queue, subject.ticks(1)).await;
    subject.pass_ticks(2).await;
    let _theirs = subject.next(&queue, subject.long()).await;
    subject.refused(&queue, mine.receipt, AGAIN).await;
    subject.nothing_for(&queue, 2).await;
}

/// A stale receipt cannot finish what somebody else has not.
pub async fn q6_a_stale_done_changes_nothing(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("mine")]).await;
    let mine = subject.next(&queue, subject.ticks(1)).await;
    subject.pass_ticks(2).await;
    let theirs = subject.next(&queue, subject.long()).await;
    subject.refused(&queue, mine.receipt, Settlement::Done).await;
    subject.finish(&queue, theirs.receipt, AGAIN).await;
    assert_eq!(subject.next(&queue, subject.long()).await.payload, "mine");
}

/// A receipt is worth nothing once its queue is gone.
pub async fn q6_a_receipt_of_a_deleted_queue_is_lost(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("mine")]).await;
    let mine = subject.next(&queue, subject.long()).await;
    subject.delete(&queue).await.expect("a queue can be deleted");
    subject.refused(&queue, mine.receipt, Settlement::Done).await;
}

/// The first receipt is attempt 1; each further one, however it came about, is a higher number.
pub async fn q12_attempts_are_counted(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("count")]).await;
    let first = subject.next(&queue, subject.long()).await;
    assert_eq!(first.attempt, 1, "at the first receipt");
    subject.finish(&queue, first.receipt, Settlement::Retry { after: Duration::ZERO }).await;
    let second = subject.next(&queue, subject.ticks(1)).await;
    assert!(second.attempt > 1, "{} after a retry", second.attempt);
    subject.pass_ticks(2).await;
    let third = subject.next(&queue, subject.long()).await;
    assert!(third.attempt > second.attempt, "{} after visibility ended", third.attempt);
}
