//! What nobody settles ends as a dead letter, where it can be looked at and deleted; queues with other
//! settings can be brought in line.

use std::time::Duration;

use crate::support::Scratch;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use flare_backend_sqs::SqsQueue;
use flare_core::ErrorKind;
use flare_core::model::{LaneId, SubscriptionId};
use flare_core::port::{Outgoing, Queue, QueueName, Receive, Settlement};
use flare_testkit::Trials;
use futures::TryStreamExt;

const SLOT: QueueName = QueueName::Slot(1);
const MINUTE: Duration = Duration::from_secs(60);

async fn url(client: &Client, name: impl Into<String>) -> String {
    client.get_queue_url().queue_name(name).send().await.unwrap().queue_url.unwrap()
}

async fn attribute(client: &Client, url: &str, name: QueueAttributeName) -> String {
    let asked = client.get_queue_attributes().queue_url(url).attribute_names(name.clone());
    asked.send().await.unwrap().attributes.unwrap().remove(&name).unwrap()
}

/// Received as often as it may be and never settled, a message is a dead letter, and waits there.
async fn what_nobody_settles_is_a_dead_letter(endpoint: String) {
    for (fifo, name) in [(false, "dead-letters"), (true, "dead-letters.fifo")] {
        let scratch = Scratch::new(&endpoint);
        let client = crate::support::raw(&endpoint);
        let config = scratch.config().max_receives(3).fifo(fifo);
        let queue = SqsQueue::connect(config).await.unwrap();
        queue.create(&SLOT).await.unwrap();
        let next = async || queue.receive(&SLOT, Receive::new(1, MINUTE)).await.unwrap();
        let group = |text: &'static str| Outgoing::new(text).group("g");
        queue.send(&SLOT, vec![group("poison")]).await.remove(0).unwrap();
        for attempt in 1..=3 {
            let message = next().await.remove(0);
            assert_eq!((&message.payload[..], message.attempt), (&b"poison"[..], attempt));
            let again = Settlement::Retry { after: Duration::ZERO };
            queue.settle(&SLOT, vec![(message.receipt, again)]).await.remove(0).unwrap();
        }
        assert_eq!(next().await, []);
        let dead = url(&client, format!("{}-{name}", scratch.prefix)).await;
        let request = client.receive_message().queue_url(&dead).wait_time_seconds(5);
        let messages = request.send().await.unwrap().messages.unwrap();
        assert_eq!(messages[0].body.as_deref(), Some("bcG9pc29u"), "b, and \"poison\" in base64");
        // The queue goes on without it, and its group does.
        queue.send(&SLOT, vec![group("next")]).await.remove(0).unwrap();
        assert_eq!(next().await[0].payload, "next");
    }
}

/// The queue of dead letters is ours, is kept for longer, and is no queue of the port.
async fn dead_letters_are_apart(endpoint: String) {
    let scratch = Scratch::new(&endpoint);
    let client = crate::support::raw(&endpoint);
    let queue = SqsQueue::connect(scratch.config()).await.unwrap();
    queue.create(&SLOT).await.unwrap();
    let listed: Vec<QueueName> = queue.list().try_collect().await.unwrap();
    assert_eq!(listed, [SLOT]);
    let dead = url(&client, format!("{}-dead-letters", scratch.prefix)).await;
    let tags = client.list_queue_tags().queue_url(&dead).send().await.unwrap().tags.unwrap();
    assert_eq!(tags["flare:prefix"], scratch.prefix);
    let kept = attribute(&client, &dead, QueueAttributeName::MessageRetentionPeriod).await;
    assert_eq!(kept, "432000", "five days");
    let slot = url(&client, format!("{}-slot-1", scratch.prefix)).await;
    let policy = attribute(&client, &slot, QueueAttributeName::RedrivePolicy).await;
    assert!(policy.contains(&format!(":{}-dead-letters\"", scratch.prefix)), "{policy}");
    assert!(policy.ends_with(r#""maxReceiveCount":1000}"#), "{policy}");
}

/// Where the queue of dead letters was deleted, the next queue to be created has it again.
async fn dead_letters_come_back_with_the_next_queue(endpoint: String) {
    let scratch = Scratch::new(&endpoint);
    let client = crate::support::raw(&endpoint);
    let queue = SqsQueue::connect(scratch.config()).await.unwrap();
    queue.create(&SLOT).await.unwrap();
    let name = format!("{}-dead-letters", scratch.prefix);
    client.delete_queue().queue_url(url(&client, &name).await).send().await.unwrap();
    queue.create(&QueueName::Slot(2)).await.unwrap();
    url(&client, name).await;
}

/// A queue called as ours for dead letters, without our tag, is not used.
async fn dead_letters_of_others_are_left_alone(endpoint: String) {
    let scratch = Scratch::new(&endpoint);
    let client = crate::support::raw(&endpoint);
    let name = format!("{}-dead-letters", scratch.prefix);
    client.create_queue().queue_name(name).send().await.unwrap();
    let queue = SqsQueue::connect(scratch.config()).await.unwrap();
    assert_eq!(queue.create(&SLOT).await.unwrap_err().kind(), ErrorKind::Conflict);
}

/// Creating a queue that has other settings leaves it as it is; aligning changes it.
async fn a_queue_with_other_settings_is_brought_in_line(endpoint: String) {
    let scratch = Scratch::new(&endpoint);
    let client = crate::support::raw(&endpoint);
    let before = scratch.config().message_limit(2_048).max_receives(7);
    SqsQueue::connect(before).await.unwrap().create(&SLOT).await.unwrap();
    let queue = SqsQueue::connect(scratch.config()).await.unwrap();
    queue.create(&SLOT).await.unwrap();
    let slot = url(&client, format!("{}-slot-1", scratch.prefix)).await;
    let size = async || attribute(&client, &slot, QueueAttributeName::MaximumMessageSize).await;
    assert_eq!(size().await, "2048");
    queue.align(&SLOT).await.unwrap();
    assert_eq!(size().await, "262144");
    let policy = attribute(&client, &slot, QueueAttributeName::RedrivePolicy).await;
    assert!(policy.ends_with(r#""maxReceiveCount":1000}"#), "{policy}");
    let missing = queue.align(&QueueName::Slot(2)).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

/// The queue of a lane is called and tagged by its subscription.
async fn a_lanes_queue_says_whose_it_is(endpoint: String) {
    let scratch = Scratch::new(&endpoint);
    let client = crate::support::raw(&endpoint);
    let queue = SqsQueue::connect(scratch.config()).await.unwrap();
    let subscription = SubscriptionId::from_bytes([7; 16]);
    queue.create(&QueueName::Lane(LaneId::new(subscription, 3))).await.unwrap();
    let url = url(&client, format!("{}-{subscription}-3", scratch.prefix)).await;
    let tags = client.list_queue_tags().queue_url(url).send().await.unwrap().tags.unwrap();
    assert_eq!(tags["flare:subscription"], subscription.to_string());
    assert_eq!(tags["flare:prefix"], scratch.prefix);
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    trials![all.of("dead_letters");
        what_nobody_settles_is_a_dead_letter,
        dead_letters_are_apart,
        dead_letters_come_back_with_the_next_queue,
        dead_letters_of_others_are_left_alone,
        a_queue_with_other_settings_is_brought_in_line,
        a_lanes_queue_says_whose_it_is,
    ]
}
