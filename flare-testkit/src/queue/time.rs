//! Q3, Q4 and Q5: nothing is received before its time, and everything is once it has come.

use flare_core::port::{Outgoing, Queue, Settlement};

use super::bench::{AGAIN, PATIENCE};
use crate::Subject;

/// A retried message is not received before its delay has passed.
pub async fn q3_retry_waits(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("retry")]).await;
    let message = subject.next(&queue, subject.long()).await;
    let after = subject.ticks(8);
    subject.finish(&queue, message.receipt, Settlement::Retry { after }).await;
    subject.nothing_for(&queue, 5).await;
}

/// A retried message is received once its delay has passed, though its visibility has not.
pub async fn q3_retry_comes_back(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("retry")]).await;
    let message = subject.next(&queue, subject.long()).await;
    let after = subject.ticks(2);
    subject.finish(&queue, message.receipt, Settlement::Retry { after }).await;
    let again = subject.next_within(&queue, subject.long(), PATIENCE).await;
    assert_eq!(again.payload, "retry");
}

/// A retry without delay makes a message visible at once.
pub async fn q3_retry_without_delay_comes_back_at_once(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("retry")]).await;
    let message = subject.next(&queue, subject.long()).await;
    subject.finish(&queue, message.receipt, AGAIN).await;
    let again = subject.next_within(&queue, subject.long(), 2).await;
    assert_eq!(again.payload, "retry");
}

/// A delayed message is not received before its delay has passed.
pub async fn q4_a_delayed_message_waits(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("later").delay(subject.ticks(8))]).await;
    subject.nothing_for(&queue, 5).await;
}

/// A delayed message is received once its delay has passed; one without delay is not held up.
pub async fn q4_a_delayed_message_comes(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let later = Outgoing::new("later").delay(subject.ticks(3));
    subject.put(&queue, [later, Outgoing::new("now")]).await;
    let messages = subject.collect(&queue, 2, subject.long()).await;
    assert_eq!(super::bench::payloads(&messages), ["later", "now"]);
}

/// A received message is nobody else's until its visibility ends.
pub async fn q5_what_is_received_is_invisible(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("mine")]).await;
    let _mine = subject.next(&queue, subject.ticks(8)).await;
    subject.nothing_for(&queue, 5).await;
}

/// Extending keeps a message invisible beyond the visibility it was received with.
pub async fn q5_an_extension_keeps_it_invisible(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("mine")]).await;
    let mine = subject.next(&queue, subject.ticks(6)).await;
    subject.pass_ticks(3).await;
    let results = subject.extend(&queue, vec![&mine.receipt], subject.ticks(8)).await;
    assert!(matches!(results[..], [Ok(())]), "{results:?}");
    subject.nothing_for(&queue, 5).await;
}

/// An extension counts from now, not from the end it replaces: it can also shorten.
pub async fn q5_an_extension_counts_from_now(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("mine")]).await;
    let mine = subject.next(&queue, subject.long()).await;
    let results = subject.extend(&queue, vec![&mine.receipt], subject.ticks(2)).await;
    assert!(matches!(results[..], [Ok(())]), "{results:?}");
    assert_eq!(subject.next(&queue, subject.long()).await.payload, "mine");
}
