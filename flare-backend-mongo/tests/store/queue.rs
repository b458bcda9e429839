//! What the queue on MongoDB does between processes. An instance of its own stands for each.

#![allow(clippy::disallowed_methods, reason = "a real service's time passes only by waiting")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::Scratch;
use bytes::Bytes;
use flare_backend_mongo::MongoQueue;
use flare_core::ErrorKind;
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueExt, QueueName, Receive, Settlement,
};
use flare_testkit::Trials;
use futures::future::join_all;

const QUEUE: QueueName = QueueName::Slot(1);
const POLL: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);
const AGAIN: Settlement = Settlement::Retry { after: Duration::ZERO };

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("queue")
        .test("processes_share_a_queue", processes_share_a_queue)
        .test("processes_share_a_queue_with_single_writes", processes_share_with_single_writes)
        .test("another_process_ends_a_wait", another_process_ends_a_wait)
        .test("one_process_ends_its_own_waits_at_once", one_process_ends_its_own_waits_at_once)
        .test("a_wait_ends_with_the_queue", a_wait_ends_with_the_queue)
        .test("a_deletion_elsewhere_is_noticed_by_senders", a_deletion_is_noticed_by_senders)
        .test("processes_coalesce_together", processes_coalesce_together)
        .test("racing_senders_leave_one_message_per_key", racing_senders_leave_one_per_key)
        .test("a_returned_message_absorbs_unless_another_does", a_returned_message_absorbs)
        .test("a_receive_dropped_half_way_gives_back", a_receive_dropped_half_way_gives_back)
        .test("calls_that_were_given_up_are_in_nobodys_way", given_up_calls_are_in_nobodys_way)
        .test("a_large_backlog_is_received_in_parts", a_large_backlog_is_received_in_parts)
}

async fn open(scratch: &Scratch) -> Arc<MongoQueue> {
    let queue = MongoQueue::connect(scratch.config().poll_every(POLL)).await.unwrap();
    queue.create(&QUEUE).await.unwrap();
    Arc::new(queue)
}

/// A node that loses its slots gives up all it was waiting for at once.
async fn given_up_calls_are_in_nobodys_way(uri: String) {
    let scratch = Scratch::new(&uri);
    let config = scratch.config().timeout(Duration::from_secs(30));
    let queue = MongoQueue::connect(config).await.unwrap();
    queue.create(&QUEUE).await.unwrap();
    // Far more than there are connections, and given up before most of them had one.
    let calls = join_all((0..5_000).map(|_| queue.depth(&QUEUE)));
    let given_up = tokio::time::timeout(Duration::from_millis(50), calls).await;
    assert!(given_up.is_err(), "they were too few to be given up");
    let depth = queue.depth(&QUEUE).await.unwrap();
    assert_eq!(depth.ready, 0);
}

async fn send(queue: &MongoQueue, messages: impl IntoIterator<Item = Outgoing>) {
    for sent in queue.send_all(&QUEUE, messages.into_iter().collect()).await {
        sent.unwrap();
    }
}

async fn settle(queue: &MongoQueue, messages: Vec<Incoming>, to: Settlement) {
    let receipts = messages.into_iter().map(|message| (message.receipt, to)).collect();
    for settled in queue.settle(&QUEUE, receipts).await {
        settled.unwrap();
    }
}

async fn take(queue: &MongoQueue, max: usize) -> Vec<Incoming> {
    queue.receive(&QUEUE, Receive::new(max, LONG)).await.unwrap()
}

async fn depth(queue: &MongoQueue) -> QueueDepth {
    queue.depth(&QUEUE).await.unwrap()
}

async fn processes_share_a_queue(uri: String) {
    let scratch = Scratch::new(&uri);
    share(&open(&scratch).await, &open(&scratch).await).await;
}

async fn processes_share_with_single_writes(uri: String) {
    let scratch = Scratch::new(&uri);
    let single = MongoQueue::connect(scratch.config().single_writes()).await.unwrap();
    share(&open(&scratch).await, &Arc::new(single)).await;
}

/// Two receivers in each process, and senders meanwhile: each message is received, and once.
async fn share(one: &Arc<MongoQueue>, other: &Arc<MongoQueue>) {
    const COUNT: usize = 400;
    let work = async |queue: &MongoQueue| {
        let mut seen: Vec<Bytes> = Vec::new();
        loop {
            let request = Receive::new(7, LONG).wait(Duration::from_secs(2));
            let messages = queue.receive(&QUEUE, request).await.unwrap();
            if messages.is_empty() {
                return seen;
            }
            seen.extend(messages.iter().map(|message| message.payload.clone()));
            settle(queue, messages, Settlement::Done).await;
        }
    };
    let fill = async {
        for batch in 0..COUNT / 20 {
            let numbers = batch * 20..(batch + 1) * 20;
            let sender = if batch % 2 == 0 { one } else { other };
            send(sender, numbers.map(|number| Outgoing::new(number.to_string()))).await;
        }
    };
    let workers = join_all([one, other, one, other].map(|queue| work(queue)));
    let (seen, ()) = tokio::join!(workers, fill);
    let mut times: HashMap<Bytes, usize> = HashMap::new();
    for payload in seen.into_iter().flatten() {
        *times.entry(payload).or_default() += 1;
    }
    assert_eq!(times.len(), COUNT, "all are received");
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert_eq!(depth(one).await, QueueDepth::exact(0, 0, 0));
}

async fn another_process_ends_a_wait(uri: String) {
    let scratch = Scratch::new(&uri);
    let (here, there) = (open(&scratch).await, open(&scratch).await);
    let receive = here.receive(&QUEUE, Receive::new(1, LONG).wait(LONG));
    let send = async {
        tokio::time::sleep(3 * POLL).await;
        send(&there, [Outgoing::new("news")]).await;
        Instant::now()
    };
    let (received, sent) = tokio::join!(receive, send);
    assert_eq!(received.unwrap()[0].payload, "news");
    // Twice the poll, and what a busy machine adds to it.
    assert!(sent.elapsed() < 2 * POLL + Duration::from_secs(1), "took {:?}", sent.elapsed());
}

async fn one_process_ends_its_own_waits_at_once(uri: String) {
    let scratch = Scratch::new(&uri);
    let never = MongoQueue::connect(scratch.config().poll_every(LONG)).await.unwrap();
    never.create(&QUEUE).await.unwrap();
    let wait = || never.receive(&QUEUE, Receive::new(1, LONG).wait(LONG));
    let sent = async {
        tokio::time::sleep(POLL).await;
        send(&never, [Outgoing::new("news")]).await;
    };
    let (received, ()) = tokio::join!(wait(), sent);
    let messages = received.unwrap();
    let given_back = async {
        tokio::time::sleep(POLL).await;
        settle(&never, messages, AGAIN).await;
    };
    let (received, ()) = tokio::join!(wait(), given_back);
    assert_eq!(received.unwrap()[0].attempt, 2);
    let deleted = async {
        tokio::time::sleep(POLL).await;
        never.delete(&QUEUE).await.unwrap();
    };
    let (received, ()) = tokio::join!(wait(), deleted);
    assert_eq!(received.unwrap_err().kind(), ErrorKind::NotFound);
}

async fn a_wait_ends_with_the_queue(uri: String) {
    let scratch = Scratch::new(&uri);
    let (here, there) = (open(&scratch).await, open(&scratch).await);
    // Queues are looked for once a second.
    let receive = here.receive(&QUEUE, Receive::new(1, LONG).wait(Duration::from_secs(30)));
    let delete = async {
        tokio::time::sleep(POLL).await;
        there.delete(&QUEUE).await.unwrap();
    };
    let (received, ()) = tokio::join!(receive, delete);
    assert_eq!(received.unwrap_err().kind(), ErrorKind::NotFound);
}

async fn a_deletion_is_noticed_by_senders(uri: String) {
    let scratch = Scratch::new(&uri);
    let (here, there) = (open(&scratch).await, open(&scratch).await);
    send(&here, [Outgoing::new("before")]).await;
    there.delete(&QUEUE).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let sent = here.send(&QUEUE, vec![Outgoing::new("after")]).await;
    assert_eq!(sent[0].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
}

async fn processes_coalesce_together(uri: String) {
    let scratch = Scratch::new(&uri);
    let (here, there) = (open(&scratch).await, open(&scratch).await);
    let keyed = |payload: &'static str| Outgoing::new(payload).coalesce("k");
    send(&here, [keyed("first").delay(LONG)]).await;
    assert_eq!(depth(&there).await, QueueDepth::exact(0, 1, 0));
    send(&there, [keyed("second"), Outgoing::new("other")]).await;
    assert_eq!(depth(&here).await, QueueDepth::exact(2, 0, 0));
    let mut payloads: Vec<_> = take(&here, 10).await.into_iter().map(|it| it.payload).collect();
    payloads.sort();
    assert_eq!(payloads, ["first", "other"]);
    send(&there, [keyed("third")]).await;
    assert_eq!(depth(&here).await, QueueDepth::exact(1, 0, 2));
}

async fn racing_senders_leave_one_per_key(uri: String) {
    let scratch = Scratch::new(&uri);
    let queues = [open(&scratch).await, open(&scratch).await];
    let batch = || (0..50).map(|key| Outgoing::new("same").coalesce(key.to_string()));
    join_all((0..8).map(|sender| send(&queues[sender % 2], batch()))).await;
    assert_eq!(depth(&queues[0]).await, QueueDepth::exact(50, 0, 0));
    let mut received = 0;
    // Whatever is in flight absorbs nothing, and whoever receives meanwhile loses nothing.
    let receive = async {
        while received < 50 {
            received += take(&queues[0], 9).await.len();
        }
    };
    tokio::join!(receive, join_all((0..4).map(|_| send(&queues[1], batch()))));
    let depth = depth(&queues[0]).await;
    assert!(depth.in_flight >= 50 && depth.ready <= 50, "{depth:?}");
}

async fn a_returned_message_absorbs(uri: String) {
    let scratch = Scratch::new(&uri);
    let queue = open(&scratch).await;
    let keyed = || Outgoing::new("same").coalesce("k");
    send(&queue, [keyed(), Outgoing::new("no key")]).await;
    let flying = take(&queue, 2).await;
    settle(&queue, flying, AGAIN).await;
    send(&queue, [keyed()]).await;
    assert_eq!(depth(&queue).await, QueueDepth::exact(2, 0, 0), "it absorbs again");
    let flying = take(&queue, 2).await;
    send(&queue, [keyed()]).await;
    settle(&queue, flying, AGAIN).await;
    assert_eq!(depth(&queue).await, QueueDepth::exact(3, 0, 0), "another absorbs already");
    send(&queue, [keyed()]).await;
    assert_eq!(depth(&queue).await, QueueDepth::exact(3, 0, 0), "one of them still absorbs");
    assert_eq!(take(&queue, 10).await.len(), 3);
}

async fn a_receive_dropped_half_way_gives_back(uri: String) {
    let scratch = Scratch::new(&uri);
    let queue = open(&scratch).await;
    send(&queue, (0..10).map(|number| Outgoing::new(number.to_string()))).await;
    // Somewhere in between it has asked and has no answer.
    for patience in (0..40).map(|step| Duration::from_micros(step * 250)) {
        let receive = queue.receive(&QUEUE, Receive::new(10, LONG));
        if let Ok(received) = tokio::time::timeout(patience, receive).await {
            settle(&queue, received.unwrap(), AGAIN).await;
        }
    }
    let begun = Instant::now();
    while depth(&queue).await != QueueDepth::exact(10, 0, 0) {
        assert!(begun.elapsed() < LONG / 4, "{:?}", depth(&queue).await);
        tokio::time::sleep(POLL).await;
    }
}

async fn a_large_backlog_is_received_in_parts(uri: String) {
    let scratch = Scratch::new(&uri);
    let queue = open(&scratch).await;
    let largest = Bytes::from(vec![7; queue.facts().max_payload]);
    for _ in 0..20 {
        send(&queue, [Outgoing::new(largest.clone())]).await;
    }
    let mut received = 0;
    while received < 20 {
        let messages = take(&queue, 1_000).await;
        assert!((1..=16).contains(&messages.len()), "{} at a time", messages.len());
        received += messages.len();
        settle(&queue, messages, Settlement::Done).await;
    }
    assert_eq!(depth(&queue).await, QueueDepth::exact(0, 0, 0));
}
