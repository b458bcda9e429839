//! SQS's own limits and habits, each reached: sizes of messages and batches, long delays, long waits, long
//! visibility, late receipts, queues that vanish, are emptied, or are somebody else's.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that fails panics")]

use std::time::{Duration, Instant};

use crate::support::Scratch;
use aws_sdk_sqs::Client;
use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::ErrorKind;
use flare_core::port::{Outgoing, Queue, QueueExt, QueueName, Receive, Settlement};
use flare_testkit::Trials;
use futures::TryStreamExt;

const QUEUE: QueueName = QueueName::Slot(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A queue of its own, and SQS without Flare in between.
async fn open(endpoint: &str) -> (SqsQueue, Client, Scratch) {
    let scratch = Scratch::new(endpoint);
    let queue = SqsQueue::connect(scratch.config()).await.unwrap();
    queue.create(&QUEUE).await.unwrap();
    (queue, crate::support::raw(endpoint), scratch)
}

async fn url(client: &Client, name: impl Into<String>) -> String {
    client.get_queue_url().queue_name(name).send().await.unwrap().queue_url.unwrap()
}

async fn put(queue: &SqsQueue, text: &'static str) {
    queue.send(&QUEUE, vec![Outgoing::new(text)]).await.remove(0).unwrap();
}

/// An eleventh message is refused with the ten before it; the core sends them in two batches.
async fn a_batch_has_ten_messages(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    let eleven = || (0..11_u8).map(|number| Outgoing::new(vec![number])).collect();
    for refused in queue.send(&QUEUE, eleven()).await {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(queue.requests().send, 0);
    for sent in queue.send_all(&QUEUE, eleven()).await {
        sent.unwrap();
    }
    assert_eq!(queue.requests().send, 2);
    let mut received = Vec::new();
    while received.len() < 11 {
        let more = queue.receive(&QUEUE, Receive::new(11, MINUTE)).await.unwrap();
        assert!(more.len() <= 10);
        received.extend(more);
    }
    let receipts: Vec<_> = received.iter().map(|it| &it.receipt).collect();
    for refused in queue.extend(&QUEUE, receipts, MINUTE).await {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let all = received.into_iter().map(|it| (it.receipt, Settlement::Done)).collect();
    for settled in queue.settle_all(&QUEUE, all).await {
        settled.unwrap();
    }
    assert_eq!(queue.requests().delete, 2);
}

/// In full batches a message costs three tenths of a request, from its sending to its settlement.
async fn full_batches_are_cheap(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    let before = queue.requests();
    let hundred = (0..100_u8).map(|number| Outgoing::new(vec![number])).collect();
    for sent in queue.send_all(&QUEUE, hundred).await {
        sent.unwrap();
    }
    for _ in 0..10 {
        let ten = queue.receive(&QUEUE, Receive::new(10, MINUTE)).await.unwrap();
        let done = ten.into_iter().map(|it| (it.receipt, Settlement::Done)).collect();
        for settled in queue.settle(&QUEUE, done).await {
            settled.unwrap();
        }
    }
    assert_eq!(queue.requests().total() - before.total(), 30);
    assert_eq!(queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap(), []);
}

/// The largest payload is what the queue itself takes, to the byte; one more is not even sent.
async fn a_payload_ends_where_the_queue_ends(endpoint: String) {
    for fifo in [false, true] {
        let scratch = Scratch::new(&endpoint);
        let config = scratch.config().message_limit(1_024).fifo(fifo);
        let queue = SqsQueue::connect(config).await.unwrap();
        queue.create(&QUEUE).await.unwrap();
        let largest = queue.facts().max_payload;
        assert_eq!(largest, if fifo { 765 } else { 767 });
        let (fits, longest) = (Outgoing::new(vec![0; largest]), Duration::from_secs(900));
        queue.send(&QUEUE, vec![fits.delay(longest)]).await.remove(0).unwrap();
        let sends = queue.requests().send;
        let refused = queue.send(&QUEUE, vec![Outgoing::new(vec![0; largest + 1])]).await.remove(0);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(queue.requests().send, sends);

        let client = crate::support::raw(&endpoint);
        let name = format!("{}-slot-1{}", scratch.prefix, if fifo { ".fifo" } else { "" });
        let url = url(&client, name).await;
        for (bytes, taken) in [(1_024, true), (1_025, false)] {
            let mut send = client.send_message().queue_url(&url).message_body("x".repeat(bytes));
            if fifo {
                send = send.message_group_id("g").message_deduplication_id(bytes.to_string());
            }
            assert_eq!(send.send().await.is_ok(), taken, "{bytes} bytes");
        }
    }
}

/// A delay beyond fifteen minutes is refused; the core sends it with fifteen, and whoever receives it
/// then sees that it is not due.
async fn a_delay_has_fifteen_minutes(endpoint: String) {
    for fifo in [false, true] {
        let scratch = Scratch::new(&endpoint);
        let queue = SqsQueue::connect(scratch.config().fifo(fifo)).await.unwrap();
        queue.create(&QUEUE).await.unwrap();
        let hour = || vec![Outgoing::new("hour").delay(Duration::from_secs(3_600))];
        let refused = queue.send(&QUEUE, hour()).await.remove(0).unwrap_err();
        assert_eq!((refused.kind(), queue.requests().send), (ErrorKind::Invalid, 0));
        queue.send_all(&QUEUE, hour()).await.remove(0).unwrap();
        assert_eq!(queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap(), []);
        let depth = queue.depth(&QUEUE).await.unwrap();
        assert_eq!((depth.ready, depth.delayed + depth.in_flight), (0, 1));
        if fifo {
            // Hidden after it was looked at, which is the one thing SQS can say of it.
            assert_eq!((depth.in_flight, queue.requests().change), (1, 1));
        }
    }
}

/// What comes twice is counted, and only the later receipt is good.
async fn a_duplicate_is_told_by_its_attempt_and_receipt(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    put(&queue, "twice").await;
    let receive = async |visibility| {
        let request = Receive::new(1, visibility).wait(Duration::from_secs(10));
        queue.receive(&QUEUE, request).await.unwrap().remove(0)
    };
    let first = receive(Duration::from_secs(1)).await;
    let second = receive(MINUTE).await;
    assert_eq!((&first.payload, first.attempt, second.attempt), (&second.payload, 1, 2));
    let deletes = queue.requests().delete;
    let late = queue.settle(&QUEUE, vec![(first.receipt, Settlement::Done)]).await.remove(0);
    assert_eq!(late.unwrap_err().error.kind(), ErrorKind::Lost);
    assert_eq!(queue.requests().delete, deletes, "SQS would have obeyed");
    queue.settle(&QUEUE, vec![(second.receipt, Settlement::Done)]).await.remove(0).unwrap();
}

/// The attempt is how often SQS gave a message out, however often that is.
async fn receipts_are_counted(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    put(&queue, "again").await;
    let again = Settlement::Retry { after: Duration::ZERO };
    for attempt in 1..=20 {
        let message = queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap().remove(0);
        assert_eq!(message.attempt, attempt);
        queue.settle(&QUEUE, vec![(message.receipt, again)]).await.remove(0).unwrap();
    }
}

/// Ten messages of the largest size are more than one request takes.
async fn a_batch_too_large_for_a_request_is_sent_in_several(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    let largest = queue.facts().max_payload;
    assert_eq!(largest, 196_607, "256 KiB of base64, less its mark");
    let batch = (0..10).map(|number| Outgoing::new(vec![number; largest])).collect();
    for sent in queue.send(&QUEUE, batch).await {
        sent.unwrap();
    }
    let mut received = Vec::new();
    while received.len() < 10 {
        let request = Receive::new(10, MINUTE).wait(Duration::from_secs(5));
        received.extend(queue.receive(&QUEUE, request).await.unwrap());
    }
    let mut numbers: Vec<u8> = received.iter().map(|message| message.payload[0]).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..10).collect::<Vec<u8>>());
    assert!(received.iter().all(|message| message.payload.len() == largest));
}

/// A queue is created with the limit that is set.
async fn the_limit_of_a_message_is_the_queues(endpoint: String) {
    use aws_sdk_sqs::types::QueueAttributeName::{MaximumMessageSize, MessageRetentionPeriod};
    let (_queue, client, scratch) = open(&endpoint).await;
    let url = url(&client, format!("{}-slot-1", scratch.prefix)).await;
    let asked = client.get_queue_attributes().queue_url(url);
    let asked = asked.attribute_names(MaximumMessageSize).attribute_names(MessageRetentionPeriod);
    let attributes = asked.send().await.unwrap().attributes.unwrap();
    assert_eq!(attributes[&MaximumMessageSize], "262144");
    assert_eq!(attributes[&MessageRetentionPeriod], "86400", "a day");
}

/// A wait beyond the twenty seconds of a request goes on.
async fn a_long_wait_is_several_requests(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    let late = Outgoing::new("late").delay(Duration::from_secs(22));
    queue.send(&QUEUE, vec![late]).await.remove(0).unwrap();
    let started = Instant::now();
    let request = Receive::new(1, MINUTE).wait(Duration::from_secs(60));
    let received = queue.receive(&QUEUE, request).await.unwrap();
    assert_eq!(received[0].payload, "late");
    assert!((21..40).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

/// A wait is not cut off by the time a call may take.
async fn a_wait_may_be_longer_than_a_call(endpoint: String) {
    let (_, _, scratch) = open(&endpoint).await;
    let config = scratch.config().timeout(Duration::from_secs(2));
    let queue = SqsQueue::connect(config).await.unwrap();
    let request = Receive::new(1, MINUTE).wait(Duration::from_secs(5));
    assert_eq!(queue.receive(&QUEUE, request).await.unwrap(), []);
}

/// A visibility beyond twelve hours is one of twelve hours.
async fn a_visibility_beyond_the_limit_is_cut(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    put(&queue, "long").await;
    let day = Duration::from_secs(24 * 3600);
    let message = queue.receive(&QUEUE, Receive::new(1, day)).await.unwrap().remove(0);
    queue.extend(&QUEUE, vec![&message.receipt], day).await.remove(0).unwrap();
    let settled = queue.settle(&QUEUE, vec![(message.receipt, Settlement::Done)]).await;
    assert!(settled[0].is_ok());
}

/// A retry beyond fifteen minutes is refused, and the receipt is good for another.
async fn a_retry_beyond_the_limit_is_refused(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    put(&queue, "later").await;
    let message = queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap().remove(0);
    let retry = Settlement::Retry { after: Duration::from_secs(901) };
    let refused = queue.settle(&QUEUE, vec![(message.receipt, retry)]).await.remove(0).unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::Invalid);
    queue.settle_all(&QUEUE, vec![(refused.receipt, retry)]).await.remove(0).unwrap();
}

/// An extension makes a receipt good beyond its first time, and no longer.
async fn an_extension_makes_a_receipt_good_for_longer(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    put(&queue, "slow").await;
    let visibility = Duration::from_secs(2);
    let message = queue.receive(&QUEUE, Receive::new(1, visibility)).await.unwrap().remove(0);
    queue.extend(&QUEUE, vec![&message.receipt], visibility * 3).await.remove(0).unwrap();
    tokio::time::sleep(visibility * 2).await;
    queue.extend(&QUEUE, vec![&message.receipt], visibility).await.remove(0).unwrap();
    tokio::time::sleep(visibility * 2).await;
    let late = queue.extend(&QUEUE, vec![&message.receipt], visibility).await.remove(0);
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Lost);
}

/// Of a batch, what is late is lost, what is good is settled.
async fn the_good_of_a_batch_are_settled(endpoint: String) {
    let (queue, _client, _scratch) = open(&endpoint).await;
    put(&queue, "short").await;
    let short = queue.receive(&QUEUE, Receive::new(1, Duration::from_secs(1))).await.unwrap();
    put(&queue, "long").await;
    let long = queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap();
    assert_eq!(long[0].payload, "long");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let both = short.into_iter().chain(long).map(|it| (it.receipt, Settlement::Done)).collect();
    let settled = queue.settle(&QUEUE, both).await;
    assert_eq!(settled[0].as_ref().unwrap_err().error.kind(), ErrorKind::Lost);
    assert!(settled[1].is_ok());
    let again = queue.receive(&QUEUE, Receive::new(10, MINUTE)).await.unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!((&again[0].payload[..], again[0].attempt), (&b"short"[..], 2));
}

/// A queue that somebody else deleted is not found, and can be created again.
async fn a_queue_deleted_behind_our_back_can_be_made_again(endpoint: String) {
    let (queue, client, scratch) = open(&endpoint).await;
    put(&queue, "gone").await;
    let url = url(&client, format!("{}-slot-1", scratch.prefix)).await;
    client.delete_queue().queue_url(url).send().await.unwrap();
    let sent = queue.send(&QUEUE, vec![Outgoing::new("nowhere")]).await.remove(0);
    assert_eq!(sent.unwrap_err().kind(), ErrorKind::NotFound);
    queue.create(&QUEUE).await.unwrap();
    put(&queue, "new").await;
    let received = queue.receive(&QUEUE, Receive::new(10, MINUTE)).await.unwrap();
    assert_eq!(received.iter().map(|it| &it.payload[..]).collect::<Vec<_>>(), [b"new"]);
}

/// A queue that was emptied goes on.
async fn an_emptied_queue_goes_on(endpoint: String) {
    let (queue, client, scratch) = open(&endpoint).await;
    put(&queue, "gone").await;
    let url = url(&client, format!("{}-slot-1", scratch.prefix)).await;
    client.purge_queue().queue_url(url).send().await.unwrap();
    assert_eq!(queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap(), []);
    put(&queue, "new").await;
    let received = queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap();
    assert_eq!(received[0].payload, "new");
}

/// What others put into our queue is handed up as it is.
async fn a_message_of_others_is_received(endpoint: String) {
    let (queue, client, scratch) = open(&endpoint).await;
    let url = url(&client, format!("{}-slot-1", scratch.prefix)).await;
    client.send_message().queue_url(url).message_body("hello").send().await.unwrap();
    let received = queue.receive(&QUEUE, Receive::new(1, MINUTE)).await.unwrap();
    assert_eq!(received[0].payload, "hello");
}

/// A queue of our name without our tag is neither listed, nor used, nor deleted.
async fn a_queue_without_our_tag_is_left_alone(endpoint: String) {
    let (queue, client, scratch) = open(&endpoint).await;
    let name = format!("{}-slot-2", scratch.prefix);
    let theirs = client.create_queue().queue_name(&name).send().await.unwrap().queue_url.unwrap();
    let listed: Vec<QueueName> = queue.list().try_collect().await.unwrap();
    assert_eq!(listed, [QUEUE]);
    let slot = QueueName::Slot(2);
    assert_eq!(queue.create(&slot).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(queue.delete(&slot).await.unwrap_err().kind(), ErrorKind::Conflict);
    let sent = queue.send(&slot, vec![Outgoing::new("theirs")]).await.remove(0);
    assert_eq!(sent.unwrap_err().kind(), ErrorKind::Conflict);
    client.delete_queue().queue_url(theirs).send().await.unwrap();
}

/// Prefixes that begin alike are apart.
async fn prefixes_are_apart(endpoint: String) {
    let (queue, _, scratch) = open(&endpoint).await;
    let longer = format!("{}-x", scratch.prefix);
    let other = SqsQueue::connect(scratch.config().prefix(longer)).await.unwrap();
    other.create(&QueueName::Spread).await.unwrap();
    let listed: Vec<QueueName> = queue.list().try_collect().await.unwrap();
    let others: Vec<QueueName> = other.list().try_collect().await.unwrap();
    other.delete(&QueueName::Spread).await.unwrap();
    assert_eq!((listed, others), (vec![QUEUE], vec![QueueName::Spread]));
}

/// Nobody there is unavailable; somebody who never answers is a timeout, soon.
async fn a_server_that_is_away_is_told_from_one_that_is_silent(_: String) {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let away_url = format!("http://{}", away.local_addr().unwrap());
    drop(away);
    let connect = async |url: String| {
        let config = SqsConfig::new().endpoint(url).region("us-east-1").credentials("a", "b");
        SqsQueue::connect(config.timeout(Duration::from_secs(3))).await.unwrap_err().kind()
    };
    assert_eq!(connect(away_url).await, ErrorKind::Unavailable);
    assert_eq!(connect(silent_url).await, ErrorKind::Timeout);
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    trials![all.of("limits");
        a_batch_has_ten_messages,
        full_batches_are_cheap,
        a_payload_ends_where_the_queue_ends,
        a_delay_has_fifteen_minutes,
        a_duplicate_is_told_by_its_attempt_and_receipt,
        receipts_are_counted,
        a_batch_too_large_for_a_request_is_sent_in_several,
        the_limit_of_a_message_is_the_queues,
        a_long_wait_is_several_requests,
        a_wait_may_be_longer_than_a_call,
        a_visibility_beyond_the_limit_is_cut,
        a_retry_beyond_the_limit_is_refused,
        an_extension_makes_a_receipt_good_for_longer,
        the_good_of_a_batch_are_settled,
        a_queue_deleted_behind_our_back_can_be_made_again,
        an_emptied_queue_goes_on,
        a_message_of_others_is_received,
        a_queue_without_our_tag_is_left_alone,
        prefixes_are_apart,
        a_server_that_is_away_is_told_from_one_that_is_silent,
    ]
}
