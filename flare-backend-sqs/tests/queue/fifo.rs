//! FIFO queues: what is made, what is sent, and delays, which SQS does not know there.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that fails panics")]

use std::time::{Duration, Instant};

use crate::support::Scratch;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use bytes::Bytes;
use flare_backend_sqs::SqsQueue;
use flare_core::port::{Incoming, Outgoing, Queue, QueueName, Receive, Settlement};
use flare_testkit::Trials;
use futures::TryStreamExt;

const SLOT: QueueName = QueueName::Slot(1);
const MINUTE: Duration = Duration::from_secs(60);
const AGAIN: Settlement = Settlement::Retry { after: Duration::ZERO };

async fn open(endpoint: &str) -> (SqsQueue, Client, Scratch) {
    let scratch = Scratch::new(endpoint);
    let queue = SqsQueue::connect(scratch.config().fifo(true)).await.unwrap();
    queue.create(&SLOT).await.unwrap();
    (queue, crate::support::raw(endpoint), scratch)
}

async fn url(client: &Client, name: impl Into<String>) -> String {
    client.get_queue_url().queue_name(name).send().await.unwrap().queue_url.unwrap()
}

async fn put(queue: &SqsQueue, message: Outgoing) {
    queue.send(&SLOT, vec![message]).await.remove(0).unwrap();
}

async fn next(queue: &SqsQueue, visibility: Duration) -> Vec<Incoming> {
    let request = Receive::new(10, visibility).wait(Duration::from_secs(15));
    queue.receive(&SLOT, request).await.unwrap()
}

/// Receives and settles until there are `count` messages or no more come: what they say, and the attempt.
async fn take(queue: &SqsQueue, count: usize) -> Vec<(Bytes, u32)> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let more = next(queue, MINUTE).await;
        if more.is_empty() {
            break;
        }
        for message in more {
            taken.push((message.payload, message.attempt));
            queue.settle(&SLOT, vec![(message.receipt, Settlement::Done)]).await.remove(0).unwrap();
        }
    }
    taken
}

fn says(messages: &[Incoming]) -> Vec<&[u8]> {
    messages.iter().map(|it| &it.payload[..]).collect()
}

/// Slots and lanes are FIFO queues with many groups at a time, stages are not; each kind has its own dead
/// letters.
async fn slots_are_fifo_and_stages_are_not(endpoint: String) {
    let (queue, client, scratch) = open(&endpoint).await;
    queue.create(&QueueName::Spread).await.unwrap();
    let slot = url(&client, format!("{}-slot-1.fifo", scratch.prefix)).await;
    let asked = client.get_queue_attributes().queue_url(slot);
    let asked = asked.attribute_names(QueueAttributeName::All).send().await.unwrap();
    let attributes = asked.attributes.unwrap();
    assert_eq!(attributes[&QueueAttributeName::FifoQueue], "true");
    assert_eq!(attributes[&QueueAttributeName::DeduplicationScope], "messageGroup");
    assert_eq!(attributes[&QueueAttributeName::FifoThroughputLimit], "perMessageGroupId");
    let policy = &attributes[&QueueAttributeName::RedrivePolicy];
    assert!(policy.contains("-dead-letters.fifo\""), "{policy}");
    for name in ["spread", "dead-letters", "dead-letters.fifo"] {
        url(&client, format!("{}-{name}", scratch.prefix)).await;
    }
}

/// What was made as the other kind is another queue, which is not listed.
async fn the_other_kind_is_another_queue(endpoint: String) {
    let (queue, _client, scratch) = open(&endpoint).await;
    let standard = SqsQueue::connect(scratch.config()).await.unwrap();
    standard.create(&QueueName::Slot(2)).await.unwrap();
    let listed: Vec<QueueName> = queue.list().try_collect().await.unwrap();
    let of_standard: Vec<QueueName> = standard.list().try_collect().await.unwrap();
    assert_eq!((listed, of_standard), (vec![SLOT], vec![QueueName::Slot(2)]));
}

/// Messages that say the same are never taken for one another, whoever sends them.
async fn equal_messages_are_all_received(endpoint: String) {
    let (queue, _client, scratch) = open(&endpoint).await;
    let other = SqsQueue::connect(scratch.config().fifo(true)).await.unwrap();
    let wake_up = || Outgoing::new("wake up").group("lane");
    for sender in [&queue, &other, &queue] {
        put(sender, wake_up()).await;
    }
    let received = take(&queue, 3).await;
    assert_eq!(received, vec![("wake up".into(), 1); 3]);
}

/// Groups whose names SQS would refuse are groups, too.
async fn any_text_is_a_group(endpoint: String) {
    let (queue, client, scratch) = open(&endpoint).await;
    let groups = ["", "a b", "https://api.example/ü", &"x".repeat(2_048)];
    for group in groups {
        put(&queue, Outgoing::new("first").group(group)).await;
        put(&queue, Outgoing::new("second").group(group)).await;
    }
    let url = url(&client, format!("{}-slot-1.fifo", scratch.prefix)).await;
    let request = client.receive_message().queue_url(url).max_number_of_messages(10);
    let name = MessageSystemAttributeName::MessageGroupId;
    let polled = request.message_system_attribute_names(name.clone()).send().await.unwrap();
    let mut seen: Vec<String> =
        polled.messages.unwrap().iter().map(|it| it.attributes().unwrap()[&name].clone()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), groups.len());
}

/// A delay is waited out within one receive; the receipt that came too early is no attempt.
async fn a_delay_is_waited_out(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    let started = Instant::now();
    put(&queue, Outgoing::new("later").delay(Duration::from_secs(4))).await;
    let messages = next(&queue, MINUTE).await;
    assert!(started.elapsed() >= Duration::from_secs(4), "{:?}", started.elapsed());
    assert_eq!((says(&messages), messages[0].attempt), (vec![&b"later"[..]], 1));
    let receipt = messages.into_iter().next().unwrap().receipt;
    queue.settle(&SLOT, vec![(receipt, AGAIN)]).await.remove(0).unwrap();
    assert_eq!(next(&queue, MINUTE).await[0].attempt, 2);
}

/// An early message holds back its own group, in order, and no other.
async fn a_delay_holds_back_its_group_alone(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    let group = |text: &'static str| Outgoing::new(text).group("g");
    let batch = vec![
        group("first").delay(Duration::from_secs(4)),
        group("second"),
        Outgoing::new("other").group("h"),
    ];
    for sent in queue.send(&SLOT, batch).await {
        sent.unwrap();
    }
    assert_eq!(says(&next(&queue, MINUTE).await), [b"other"]);
    let received: Vec<Bytes> = take(&queue, 2).await.into_iter().map(|(text, _)| text).collect();
    assert_eq!(received, ["first", "second"]);
}

/// A receiver that dies before it puts an early message off loses nothing, and makes nothing early.
async fn a_delay_survives_its_first_receiver(endpoint: String) {
    let (queue, client, scratch) = open(&endpoint).await;
    let started = Instant::now();
    put(&queue, Outgoing::new("later").delay(Duration::from_secs(8))).await;
    let url = url(&client, format!("{}-slot-1.fifo", scratch.prefix)).await;
    let dying = client.receive_message().queue_url(url).visibility_timeout(1).send().await.unwrap();
    assert_eq!(dying.messages.unwrap().len(), 1);
    let messages = next(&queue, MINUTE).await;
    // By the answer's own time, which is in whole seconds.
    assert!(started.elapsed() >= Duration::from_secs(7), "{:?}", started.elapsed());
    assert_eq!(says(&messages), [b"later"]);
}

/// What is settled or late is refused by SQS itself, too.
async fn a_late_receipt_is_lost(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    put(&queue, Outgoing::new("twice").group("g")).await;
    let first = next(&queue, Duration::from_secs(1)).await.remove(0);
    let second = next(&queue, MINUTE).await.remove(0);
    assert_eq!((first.attempt, second.attempt), (1, 2));
    let late = queue.settle(&SLOT, vec![(first.receipt, Settlement::Done)]).await.remove(0);
    assert_eq!(late.unwrap_err().error.kind(), flare_core::ErrorKind::Lost);
    queue.settle(&SLOT, vec![(second.receipt, Settlement::Done)]).await.remove(0).unwrap();
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    trials![all.of("fifo");
        slots_are_fifo_and_stages_are_not,
        the_other_kind_is_another_queue,
        equal_messages_are_all_received,
        any_text_is_a_group,
        a_delay_is_waited_out,
        a_delay_holds_back_its_group_alone,
        a_delay_survives_its_first_receiver,
        a_late_receipt_is_lost,
    ]
}
