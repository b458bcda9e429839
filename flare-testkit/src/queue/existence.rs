//! Q9 and Q10: queues exist from creation to deletion, each for itself.

use flare_core::ErrorKind;
use flare_core::port::{Outgoing, Queue, QueueName, Receive};
use futures::TryStreamExt;

use super::bench::{LONG, kind, lane};
use crate::Subject;

/// Ticks in which the news of a creation or deletion must have spread (SQS takes a minute).
const SPREADS: u32 = LONG + 10;

/// All that a missing queue is asked, and must refuse.
async fn is_missing(subject: &Subject<dyn Queue>, queue: &QueueName) -> bool {
    let mut sent = subject.send(queue, vec![Outgoing::new("nowhere")]).await;
    assert_eq!(sent.len(), 1, "one result per message");
    let received = subject.receive(queue, Receive::new(1, subject.long())).await;
    let answers = [kind(sent.remove(0)), kind(received), kind(subject.depth(queue).await)];
    answers == [Some(ErrorKind::NotFound); 3]
}

/// Sending to, receiving from and counting a queue nobody created is not found.
pub async fn q9_a_queue_never_created_is_not_found(subject: Subject<dyn Queue>) {
    subject.queue().await;
    let never = QueueName::Slot(9);
    assert!(is_missing(&subject, &never).await);
    // Asking for it has not created it.
    assert!(is_missing(&subject, &never).await);
}

/// Once a queue was deleted it is not found.
pub async fn q9_a_deleted_queue_is_not_found(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("gone")]).await;
    subject.delete(&queue).await.expect("a queue can be deleted");
    for _ in 0..SPREADS {
        if is_missing(&subject, &queue).await {
            return;
        }
        subject.pass_ticks(1).await;
    }
    panic!("a deleted queue is still there");
}

/// Creating what exists and deleting what does not are no errors.
pub async fn q9_creating_and_deleting_again_are_no_errors(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.create(&queue).await.expect("creating again is no error");
    subject.delete(&queue).await.expect("a queue can be deleted");
    subject.delete(&queue).await.expect("deleting again is no error");
    subject.delete(&lane(9)).await.expect("deleting what never was is no error");
}

/// Creating a queue that exists leaves what is in it.
pub async fn q9_creating_again_keeps_what_is_there(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [Outgoing::new("kept")]).await;
    subject.create(&queue).await.expect("creating again is no error");
    assert_eq!(subject.next(&queue, subject.long()).await.payload, "kept");
}

/// The list of queues is what was created and not deleted, once each.
pub async fn q9_what_exists_is_listed(subject: Subject<dyn Queue>) {
    let deleted = QueueName::Slot(2);
    let mut expected = [QueueName::Partition, QueueName::Spread, QueueName::Slot(1), lane(3)];
    expected.sort();
    for queue in expected.iter().chain([&deleted]) {
        subject.make(queue).await;
    }
    subject.delete(&deleted).await.expect("a queue can be deleted");
    let mut listed = Vec::new();
    for _ in 0..SPREADS {
        listed = subject.list().try_collect().await.expect("queues can be listed");
        listed.sort();
        if listed == expected {
            return;
        }
        subject.pass_ticks(1).await;
    }
    panic!("listed {listed:?} instead of {expected:?}");
}

/// What is sent to one queue is received from that one alone.
pub async fn q10_queues_are_apart(subject: Subject<dyn Queue>) {
    let queues = [
        QueueName::Partition,
        QueueName::Spread,
        QueueName::Slot(1),
        QueueName::Slot(11),
        lane(1),
        lane(11),
    ];
    for queue in &queues {
        subject.make(queue).await;
    }
    for queue in &queues {
        subject.put(queue, [Outgoing::new(queue.to_string())]).await;
    }
    for queue in &queues {
        let message = subject.next(queue, subject.long()).await;
        assert_eq!(message.payload, queue.to_string());
        subject.nothing_for(queue, 0).await;
    }
}
