//! Locks: a document that a host's open transaction has delays only itself, and Flare's own statements never wait
//! for each other in a circle.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresQueue, PostgresRepository};
use flare_core::ErrorKind;
use flare_core::model::{
    Content, DocumentKey, DocumentUrl, Epoch, Generation, IdSource, Present, ResourceId, Revision,
    Round, RowEffect, RowKey, Spread, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    Clock, DocumentStore, DocumentWrite, Outgoing, Queue, QueueName, Receive, RowStore, RowUpdate,
    Settlement, SystemClock,
};
use flare_testkit::Trials;

use crate::support::{OwnDatabase, Scratch, deadlocks};

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("locks")
        .test("a_locked_document_delays_only_itself", locked)
        .test("many_documents_that_a_host_makes_delay_no_other", many_made)
        .test("a_document_that_a_host_keeps_is_forgotten_later", kept)
        .test("overlapping_batches_never_deadlock", overlapping)
        .test("keyed_messages_that_return_and_come_never_deadlock", keyed)
}

fn resource() -> ResourceId {
    IdSource::seeded(3).next(Timestamp::from_unix_seconds(1_700_000_000)).into()
}

fn key(number: usize) -> DocumentKey {
    let url = DocumentUrl::parse(&format!("http://a.example/{number}")).unwrap();
    DocumentKey::new(resource(), url)
}

fn put(number: usize, revision: i64) -> DocumentWrite {
    let content = Content::from_stored(bytes::Bytes::from_static(b"{}"));
    DocumentWrite::put(key(number), Revision::new(revision), content)
}

async fn locked(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let store = backend.repository();
    store.write_documents((0..4).map(|number| put(number, 1)).collect()).await;
    let mut client = scratch.connect().await;
    let host = client.transaction().await.unwrap();
    let lock = format!(
        "SELECT 1 FROM {}.documents WHERE url = 'http://a.example/2' FOR NO KEY UPDATE",
        scratch.name
    );
    host.execute(&lock, &[]).await.unwrap();
    // One that the host makes new is in nobody's way either.
    let made = format!(
        "INSERT INTO {}.documents (resource, hash, url, gone, updated, undispatched, dispatched_gone) \
         SELECT resource, hashtextextended('http://a.example/9', 0), 'http://a.example/9', 2, 0, false, 0 FROM {}.documents LIMIT 1",
        scratch.name, scratch.name
    );
    host.execute(&made, &[]).await.unwrap();
    let writes = [0, 1, 2, 3, 9].map(|number| put(number, 2));
    let answers = store.write_documents(writes.to_vec()).await;
    let kinds: Vec<Option<ErrorKind>> =
        answers.iter().map(|answer| answer.as_ref().err().map(flare_core::Error::kind)).collect();
    assert_eq!(kinds, [None, None, Some(ErrorKind::Busy), None, Some(ErrorKind::Busy)]);
    let heads = store.document_heads((0..4).map(key).collect()).await.unwrap();
    let revisions: Vec<i64> =
        heads.into_iter().flatten().map(|head| head.version.revision().get()).collect();
    assert_eq!(revisions, [2, 2, 1, 2]);
    host.rollback().await.unwrap();
    let answers = store.write_documents(vec![put(2, 2), put(9, 2)]).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

/// A host's open transaction makes a hundred documents that a batch is about, too. The others of the batch are stored
/// at once, and the call is over when it is clear that the hundred are not to be had.
async fn many_made(uri: String) {
    let scratch = Scratch::new(&uri);
    let store = PostgresRepository::connect(scratch.config()).await.unwrap();
    store.write_documents(vec![put(0, 1)]).await.remove(0).unwrap();
    let mut client = scratch.connect().await;
    let host = client.transaction().await.unwrap();
    let made = format!(
        "INSERT INTO {0}.documents (resource, hash, url, gone, updated, undispatched, dispatched_gone) \
         SELECT d.resource, hashtextextended('http://a.example/' || g, 0), 'http://a.example/' || g, 2, 0, false, 0 \
         FROM {0}.documents d, generate_series(100, 199) g",
        scratch.name
    );
    host.execute(&made, &[]).await.unwrap();
    // The free ones come last, first and in between.
    let numbers: Vec<usize> = (98..=201).chain([0]).collect();
    let free = [98, 99, 200, 201, 0];
    let writes: Vec<DocumentWrite> = numbers.iter().map(|number| put(*number, 2)).collect();
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let writing = store.write_documents(writes);
    let others = async {
        let store = PostgresRepository::connect(scratch.config()).await.unwrap();
        loop {
            let heads = store.document_heads(free.map(key).to_vec()).await.unwrap();
            let stored = heads.into_iter().flatten();
            if stored.filter(|head| head.version.revision().get() == 2).count() == free.len() {
                return clock.monotonic() - began;
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    let (answers, stored) = futures::future::join(writing, others).await;
    let took = clock.monotonic() - began;
    for (number, answer) in numbers.iter().zip(answers) {
        let kind = answer.err().map(|error| error.kind());
        assert_eq!(kind, (!free.contains(number)).then_some(ErrorKind::Busy), "{number}");
    }
    assert!(stored < Duration::from_millis(1_500), "stored after {stored:?}");
    assert!(took < Duration::from_secs(4), "answered after {took:?}");
    host.rollback().await.unwrap();
}

/// A removal passes over documents that a host keeps, and says so where there is nothing else to forget.
async fn kept(uri: String) {
    let scratch = Scratch::new(&uri);
    let store = PostgresRepository::connect(scratch.config()).await.unwrap();
    store.write_documents(vec![put(1, 1), put(2, 1)]).await;
    let version = Version::live(Revision::new(1));
    store.mark_dispatched(vec![(key(1), version), (key(2), version)]).await;
    let mut client = scratch.connect().await;
    let host = client.transaction().await.unwrap();
    let keep = format!(
        "SELECT 1 FROM {}.documents WHERE url = 'http://a.example/1' FOR KEY SHARE",
        scratch.name
    );
    host.execute(&keep, &[]).await.unwrap();
    let busy = |error: flare_core::Error| assert_eq!(error.kind(), ErrorKind::Busy);
    store.remove_document(&key(1), version).await.map_err(busy).unwrap_err();
    assert!(!store.remove_document(&key(1), Version::live(Revision::new(2))).await.unwrap());
    assert_eq!(store.remove_documents(resource(), 10).await.unwrap(), 1);
    store.remove_documents(resource(), 10).await.map_err(busy).unwrap_err();
    host.rollback().await.unwrap();
    assert!(store.remove_document(&key(1), version).await.unwrap());
    assert_eq!(store.remove_documents(resource(), 10).await.unwrap(), 0);
}

/// Keyed messages are sent while others with the same keys are given back, in different orders.
async fn keyed(uri: String) {
    const KEYS: usize = 40;
    let database = OwnDatabase::new(&uri).await;
    let scratch = Scratch::new(&database.uri);
    let before = deadlocks(&scratch).await;
    let queue = PostgresQueue::connect(scratch.config()).await.unwrap();
    let name = QueueName::Partition;
    queue.create(&name).await.unwrap();
    let mut workers = Vec::new();
    for seed in 0..6_u64 {
        let (config, name) = (scratch.config().pool_limit(2), name.clone());
        workers.push(tokio::spawn(async move {
            let queue = PostgresQueue::connect(config).await.unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..30 {
                let mut keys: Vec<usize> = (0..KEYS).collect();
                random.shuffle(&mut keys);
                let message = |key: &usize| Outgoing::new("x").coalesce(format!("k{key}"));
                for sent in queue.send(&name, keys.iter().map(message).collect()).await {
                    sent.unwrap();
                }
                let request = Receive::new(KEYS, Duration::from_secs(60));
                let mut taken = queue.receive(&name, request).await.unwrap();
                random.shuffle(&mut taken);
                let retry = Settlement::Retry { after: Duration::ZERO };
                let settle = taken.into_iter().map(|it| (it.receipt, retry)).collect();
                for settled in queue.settle(&name, settle).await {
                    settled.unwrap();
                }
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(deadlocks(&scratch).await, before, "the server's own count of deadlocks");
}

/// Ten handles at the same documents and rows in different orders.
async fn overlapping(uri: String) {
    let database = OwnDatabase::new(&uri).await;
    let scratch = Scratch::new(&database.uri);
    let before = deadlocks(&scratch).await;
    let ids = IdSource::seeded(4);
    let now = Timestamp::from_unix_seconds(1_700_000_000);
    let subscriptions: Arc<Vec<SubscriptionId>> =
        Arc::new((0..4).map(|_| ids.next(now).into()).collect());
    PostgresRepository::connect(scratch.config()).await.unwrap();
    let mut workers = Vec::new();
    for seed in 0..10_u64 {
        let (config, subscriptions) = (scratch.config().pool_limit(2), Arc::clone(&subscriptions));
        workers.push(tokio::spawn(async move {
            let store = PostgresRepository::connect(config).await.unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            for round in 1..6_i64 {
                let mut numbers: Vec<usize> = (0..40).collect();
                random.shuffle(&mut numbers);
                let writes = numbers.iter().map(|number| put(*number, round)).collect();
                for answer in store.write_documents(writes).await {
                    answer.unwrap();
                }
                let version = Version::live(Revision::new(round));
                let mut spreads: Vec<Spread> = Vec::new();
                for number in &numbers {
                    spreads.extend(subscriptions.iter().map(|subscription| {
                        Spread::new(*subscription, Generation::new(1), key(*number), version)
                    }));
                }
                random.shuffle(&mut spreads);
                store.spread_rows(spreads.clone()).await.unwrap();
                random.shuffle(&mut spreads);
                let updates = spreads.iter().map(|spread| RowUpdate {
                    key: RowKey::new(spread.subscription, spread.document.url.clone()),
                    round: Round::ZERO,
                    effect: RowEffect::Settle { version, present: Present::Yes, not_before: None },
                });
                for answer in store.apply_rows(Epoch::new(1), updates.collect()).await {
                    answer.unwrap();
                }
                let versions = numbers.iter().map(|number| (key(*number), version)).collect();
                // Another one may be at it at this very moment; whoever asked does so again.
                for answer in store.mark_dispatched(versions).await {
                    let busy = |error: flare_core::Error| error.kind() == ErrorKind::Busy;
                    assert!(answer.map_or_else(busy, |()| true));
                }
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(deadlocks(&scratch).await, before, "the server's own count of deadlocks");
}
