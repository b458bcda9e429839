//! What the queue on MongoDB costs the server, by the server's own counters.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]
#![allow(clippy::disallowed_methods, reason = "a real service's time passes only by waiting")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flare_backend_mongo::MongoQueue;
use flare_core::port::{Outgoing, Queue, QueueName, Receive, Settlement};
use flare_testkit::{Service, Trials};
use futures::future::join_all;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use support::Scratch;
use tokio::sync::Mutex;

/// Held by whoever counts: the counters are the whole server's.
static ALONE: Mutex<()> = Mutex::const_new(());

const QUEUE: QueueName = QueueName::Slot(1);
const POLL: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    Trials::on(Service::MONGODB)
        .test("all_who_wait_cost_one_query_per_poll", all_who_wait_cost_one_query_per_poll)
        .test("a_dropped_wait_costs_nothing", a_dropped_wait_costs_nothing)
        .test("no_call_looks_at_more_than_it_is_about", no_call_looks_at_more_than_it_is_about)
        .run()
}

async fn open(scratch: &Scratch) -> Arc<MongoQueue> {
    let queue = MongoQueue::connect(scratch.config().poll_every(POLL)).await.unwrap();
    queue.create(&QUEUE).await.unwrap();
    Arc::new(queue)
}

/// What the server has done so far.
#[derive(Debug, Clone, Copy)]
struct Counters {
    aggregates: i64,
    keys: i64,
    documents: i64,
    collection_scans: i64,
}

impl Counters {
    async fn read(database: &mongodb::Database) -> Self {
        let status = database.run_command(doc! { "serverStatus": 1 }).await.unwrap();
        let number = |path: &[&str]| {
            let (last, inner) = path.split_last().unwrap();
            let inner = inner.iter().fold(&status, |at, name| at.get_document(name).unwrap());
            inner.get_i64(last).unwrap()
        };
        Self {
            aggregates: number(&["metrics", "commands", "aggregate", "total"]),
            keys: number(&["metrics", "queryExecutor", "scanned"]),
            documents: number(&["metrics", "queryExecutor", "scannedObjects"]),
            collection_scans: number(&["metrics", "queryExecutor", "collectionScans", "total"]),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            aggregates: self.aggregates - before.aggregates,
            keys: self.keys - before.keys,
            documents: self.documents - before.documents,
            collection_scans: self.collection_scans - before.collection_scans,
        }
    }
}

async fn all_who_wait_cost_one_query_per_poll(uri: String) {
    let _alone = ALONE.lock().await;
    let scratch = Scratch::new(&uri);
    let queue = open(&scratch).await;
    let database = scratch.database().await;
    let names = (2..1_001).map(|slot| doc! { "_id": format!("slot-{slot}") });
    database.collection::<Document>("flare_queues").insert_many(names).await.unwrap();
    let waiting: Vec<_> = (1..1_001)
        .map(|slot| {
            let queue = Arc::clone(&queue);
            let request = Receive::new(1, LONG).wait(LONG);
            tokio::spawn(async move { queue.receive(&QueueName::Slot(slot), request).await })
        })
        .collect();
    // All have looked once, and wait.
    let mut before = Counters::read(&database).await;
    loop {
        tokio::time::sleep(5 * POLL).await;
        let now = Counters::read(&database).await;
        if now.since(before).aggregates <= 5 {
            break;
        }
        before = now;
    }
    let (begun, before) = (Instant::now(), Counters::read(&database).await);
    tokio::time::sleep(10 * POLL).await;
    let cost = Counters::read(&database).await.since(before);
    let polls = begun.elapsed().as_millis() / POLL.as_millis() + 1;
    assert!(cost.aggregates >= 1 && cost.aggregates as u128 <= polls, "{polls} polls: {cost:?}");
    // Messages are found in the index; the records of the queues are looked at once a second.
    let looks = begun.elapsed().as_secs() + 1;
    assert!(cost.documents as u64 <= 1_000 * looks, "{cost:?}");
    // Just the one that has something is woken.
    for sent in queue.send(&QUEUE, vec![Outgoing::new("news")]).await {
        sent.unwrap();
    }
    let (first, _, rest) = futures::future::select_all(waiting).await;
    assert_eq!(first.unwrap().unwrap()[0].payload, "news");
    assert!(rest.iter().all(|waiting| !waiting.is_finished()));
    rest.iter().for_each(tokio::task::JoinHandle::abort);
}

async fn a_dropped_wait_costs_nothing(uri: String) {
    let _alone = ALONE.lock().await;
    let scratch = Scratch::new(&uri);
    let (queue, other) = (open(&scratch).await, open(&scratch).await);
    let wait = || queue.receive(&QUEUE, Receive::new(1, LONG).wait(LONG));
    assert!(tokio::time::timeout(5 * POLL, wait()).await.is_err(), "there is nothing");
    tokio::time::sleep(3 * POLL).await;
    let database = scratch.database().await;
    let before = Counters::read(&database).await;
    tokio::time::sleep(5 * POLL).await;
    assert_eq!(Counters::read(&database).await.since(before).aggregates, 0);
    // Whoever waits next is looked after again.
    let send = async {
        tokio::time::sleep(POLL).await;
        other.send(&QUEUE, vec![Outgoing::new("news")]).await
    };
    assert_eq!(tokio::join!(wait(), send).0.unwrap().len(), 1);
}

async fn no_call_looks_at_more_than_it_is_about(uri: String) {
    let _alone = ALONE.lock().await;
    let scratch = Scratch::new(&uri);
    let queue = open(&scratch).await;
    let database = scratch.database().await;
    fill(&database).await;
    // One with nothing but delayed messages, one with none.
    let slots = [QueueName::Slot(2), QueueName::Slot(3)];
    for slot in &slots {
        queue.create(slot).await.unwrap();
    }
    // Of ten messages each call is; per message it looks at the record and a few keys.
    let within = async |call: &str, before: Counters| {
        let cost = Counters::read(&database).await.since(before);
        let most = cost.keys.max(cost.documents);
        assert!(cost.collection_scans == 0 && most <= 60, "{call}: {cost:?}");
        Counters::read(&database).await
    };
    let before = Counters::read(&database).await;
    let same = |key| Outgoing::new("same").coalesce(format!("1-{key}"));
    assert!(queue.send(&QUEUE, (0..10).map(same).collect()).await.iter().all(Result::is_ok));
    let before = within("send", before).await;
    let mut flying = queue.receive(&QUEUE, Receive::new(10, LONG)).await.unwrap();
    assert_eq!(flying.len(), 10);
    let before = within("receive", before).await;
    let receipts = flying.iter().map(|message| &message.receipt).collect();
    assert!(queue.extend(&QUEUE, receipts, LONG).await.iter().all(Result::is_ok));
    let before = within("extend", before).await;
    let done = flying.split_off(5).into_iter().map(|it| (it.receipt, Settlement::Done));
    let again = Settlement::Retry { after: Duration::ZERO };
    let settlements = done.chain(flying.into_iter().map(|it| (it.receipt, again))).collect();
    assert!(queue.settle(&QUEUE, settlements).await.iter().all(Result::is_ok));
    let before = within("settle", before).await;
    let wait = |slot| queue.receive(slot, Receive::new(1, LONG).wait(5 * POLL));
    assert!(join_all(slots.iter().map(wait)).await.iter().all(Result::is_ok));
    within("waiting", before).await;
}

/// 100,000 messages: due and delayed in one queue, delayed in another.
async fn fill(database: &mongodb::Database) {
    let messages = database.collection::<Document>("flare_messages");
    let payload = Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: vec![1] });
    for batch in 0..20_i64 {
        let records = (0..5_000_i64).map(|number| {
            let key = format!("slot-1 {batch}-{number}");
            let (slot, at) = match number % 4 {
                0 | 1 => ("slot-1", number),
                2 => ("slot-1", i64::MAX - number),
                _ => ("slot-2", i64::MAX - number),
            };
            doc! {
                "queue": slot,
                "at": at,
                "payload": payload.clone(),
                "attempt": 0,
                "key": &key,
                "absorbs": &key,
            }
        });
        messages.insert_many(records).await.unwrap();
    }
}
