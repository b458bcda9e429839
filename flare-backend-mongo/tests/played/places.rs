//! Who may use a connection while others hold theirs: against a server that leaves calls hanging
//! when told to.

#![allow(clippy::disallowed_methods, reason = "a call that hangs must fail in real time")]

use std::time::Duration;

use crate::wire_stub::{Reply, WireStub};
use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Result;
use flare_core::model::{Content, DocumentKey, DocumentUrl, ResourceId, Revision};
use flare_core::port::{
    DocumentStore, DocumentWrite, Lease, LeaseId, Outgoing, Queue, QueueName, ResourceStore,
};
use mongodb::bson::doc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections for work and puts together.
const POOL: u32 = 10;
/// Far more calls than there are connections.
const MANY: usize = 50;
/// Far less than a call that hangs takes.
const SOON: Duration = Duration::from_secs(5);

async fn connect(stub: &WireStub, pool: u32) -> MongoBackend {
    let config = MongoConfig::new(stub.uri()).timeout(Duration::from_secs(60)).pool_limit(pool);
    MongoBackend::connect(config).await.expect("the stub is set up")
}

fn url() -> DocumentUrl {
    DocumentUrl::parse("http://api.example/items/1").expect("a URL")
}

/// Has every `find` from now on hang, makes `MANY` calls and waits until no more are sent.
async fn hang<F>(stub: &WireStub, call: impl Fn() -> F) -> JoinSet<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut calls = JoinSet::new();
    for _ in 0..MANY {
        stub.next("find", Reply::Silence);
        calls.spawn(call());
    }
    let mut heard = (0, stub.heard("find"));
    while heard.0 != heard.1 {
        sleep(Duration::from_millis(200)).await;
        heard = (heard.1, stub.heard("find"));
    }
    calls
}

/// Puts that hang.
async fn hanging_puts(stub: &WireStub, backend: &MongoBackend) -> JoinSet<()> {
    hang(stub, || {
        let repository = backend.repository();
        async move { drop(repository.match_resources(vec![url()]).await) }
    })
    .await
}

/// Work that hangs.
async fn hanging_work(stub: &WireStub, backend: &MongoBackend) -> JoinSet<()> {
    hang(stub, || {
        let repository = backend.repository();
        async move { drop(repository.resource(ResourceId::from_bytes([1; 16])).await) }
    })
    .await
}

/// What comes soon, though other calls hang.
async fn soon<T>(what: &str, call: impl Future<Output = Result<T>>) -> T {
    let answer = timeout(SOON, call).await;
    answer
        .unwrap_or_else(|_| panic!("{what} waits behind calls that hang"))
        .expect("it is answered")
}

async fn put(backend: &MongoBackend) -> Result<()> {
    let key = DocumentKey::new(ResourceId::from_bytes([1; 16]), url());
    let write = DocumentWrite::put(key, Revision::new(1), Content::from_stored("{}".into()));
    backend.repository().write_documents(vec![write]).await.remove(0).map(drop)
}

async fn keep_alive(stub: &WireStub, backend: &MongoBackend) {
    let kept = doc! { "ttl": 15_000_000_000_i64, "revision": 7_i64 };
    let state = doc! { "_id": "state", "revision": 7_i64, "last": [kept] };
    stub.next("findAndModify", Reply::With(doc! { "ok": 1, "value": state }));
    soon("a keep-alive", backend.lease().keep_alive(LeaseId::new(1))).await;
}

#[tokio::test]
async fn a_keep_alive_passes_while_work_and_puts_hang() {
    for pool in [1, POOL] {
        let stub = WireStub::start();
        let backend = connect(&stub, pool).await;
        let _puts = hanging_puts(&stub, &backend).await;
        let _work = hanging_work(&stub, &backend).await;
        keep_alive(&stub, &backend).await;
    }
}

#[tokio::test]
async fn a_keep_alive_passes_while_looks_at_the_leases_hang() {
    let stub = WireStub::start();
    let backend = connect(&stub, POOL).await;
    let mut looks = JoinSet::new();
    for _ in 0..MANY {
        stub.next("aggregate", Reply::Silence);
        let lease = backend.lease();
        looks.spawn(async move { drop(lease.list("").await) });
    }
    sleep(Duration::from_millis(500)).await;
    keep_alive(&stub, &backend).await;
}

#[tokio::test]
async fn work_has_places_of_its_own_while_puts_hang() {
    for pool in [2, 3, POOL] {
        let stub = WireStub::start();
        let backend = connect(&stub, pool).await;
        let _puts = hanging_puts(&stub, &backend).await;
        let queue = QueueName::Spread;
        soon("work", async { backend.queue().create(&queue).await }).await;
    }
}

#[tokio::test]
async fn puts_have_places_of_their_own_while_work_hangs() {
    for pool in [2, 3, POOL] {
        let stub = WireStub::start();
        let backend = connect(&stub, pool).await;
        let _work = hanging_work(&stub, &backend).await;
        soon("a put", put(&backend)).await;
        // It is announced as well, from the same places.
        let seen = doc! { "_id": "partition", "now": 7_i64 };
        let cursor = doc! { "id": 0_i64, "ns": "flare.flare_queues", "firstBatch": [seen] };
        stub.next("aggregate", Reply::With(doc! { "ok": 1, "cursor": cursor }))
            .next("insert", Reply::With(doc! { "ok": 1, "n": 1 }));
        let announce = async {
            let message = vec![Outgoing::new("task")];
            backend.queue().send(&QueueName::Partition, message).await.remove(0)
        };
        soon("an announcement", announce).await;
    }
}

#[tokio::test]
async fn no_more_calls_are_made_than_there_are_places() {
    let stub = WireStub::start();
    let backend = connect(&stub, POOL).await;
    let before = stub.heard("find");
    let _puts = hanging_puts(&stub, &backend).await;
    let _work = hanging_work(&stub, &backend).await;
    assert_eq!(stub.heard("find") - before, POOL as usize);
}
