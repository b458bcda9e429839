//! Q15: where the facts say so, groups are in order. Elsewhere there is nothing to try but that
//! grouped messages are received at all.

use bytes::Bytes;
use flare_core::port::{Incoming, Outgoing, Queue, QueueName, Settlement};

use super::bench::{AGAIN, PATIENCE, payloads};
use crate::Subject;

fn grouped(payload: String, group: &str) -> Outgoing {
    Outgoing::new(payload).group(group)
}

/// The next messages of an ordered queue, as they come.
async fn some(subject: &Subject<dyn Queue>, queue: &QueueName) -> Vec<Incoming> {
    for _ in 0..=PATIENCE {
        let messages = subject.poll(queue, subject.facts().max_batch, subject.long()).await;
        if !messages.is_empty() {
            return messages;
        }
        subject.pass_ticks(1).await;
    }
    panic!("no message came within {PATIENCE} ticks")
}

/// Messages of one group are received in the order they were sent.
pub async fn q15_a_group_is_in_order(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    let sent = || (0..12).map(|number| format!("{number:02}"));
    subject.put(&queue, sent().map(|payload| grouped(payload, "g"))).await;
    if !subject.facts().ordered {
        let all = subject.collect(&queue, 12, subject.long()).await;
        assert_eq!(payloads(&all), sent().collect::<Vec<_>>());
        return;
    }
    let mut received: Vec<Bytes> = Vec::new();
    while received.len() < 12 {
        for message in some(&subject, &queue).await {
            received.push(message.payload);
            subject.finish(&queue, message.receipt, Settlement::Done).await;
        }
    }
    assert_eq!(received, sent().collect::<Vec<_>>());
}

/// While a message is in flight, nothing later of its group is received.
pub async fn q15_an_unsettled_message_holds_its_group_back(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [grouped("first".into(), "g")]).await;
    let _first = subject.next(&queue, subject.long()).await;
    subject.put(&queue, [grouped("second".into(), "g")]).await;
    if subject.facts().ordered {
        subject.nothing_for(&queue, 3).await;
    }
}

/// A message given back is received again before the later ones of its group.
pub async fn q15_a_retried_message_keeps_its_place(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [grouped("first".into(), "g")]).await;
    let first = subject.next(&queue, subject.long()).await;
    subject.put(&queue, [grouped("second".into(), "g")]).await;
    subject.finish(&queue, first.receipt, AGAIN).await;
    if subject.facts().ordered {
        assert_eq!(some(&subject, &queue).await[0].payload, "first");
    }
}

/// A group that is held back holds back neither others nor what has no group.
pub async fn q15_groups_do_not_hold_each_other_back(subject: Subject<dyn Queue>) {
    let queue = subject.queue().await;
    subject.put(&queue, [grouped("first".into(), "g")]).await;
    let _first = subject.next(&queue, subject.long()).await;
    subject.put(&queue, [grouped("other".into(), "h"), Outgoing::new("none")]).await;
    let others = subject.collect(&queue, 2, subject.long()).await;
    assert_eq!(payloads(&others), ["none", "other"]);
}
