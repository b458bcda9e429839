//! What transactions of a host's own put where the queue is not in this schema: no commit can store a task, so it is
//! looked for, and handed out once. What Flare's own calls put they have announced themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flare_backend_memory::MemoryBackend;
use flare_backend_postgres::PostgresBackend;
use flare_core::model::{Content, DocumentKey, DocumentUrl, Resource, Version};
use flare_core::port::{
    DocumentStore, DocumentWrite, Queue, QueueName, Repository, SystemClock, Undispatched,
};
use flare_core::prelude::*;
use flare_core::{Flare, RuntimeHandle, Settings};
use flare_testkit::{RecordingDelivery, Trials};
use tokio_postgres::Client;

use crate::support::Scratch;
use crate::transactions::{at, order, with_orders};

/// Longer than any trial: what happens sooner was not found by what comes round so seldom.
const NEVER: Duration = Duration::from_hours(1);
const SECOND: Duration = Duration::from_secs(1);

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("queue_elsewhere")
        .test("commits_reach_clients_soon", commits_reach_clients)
        .test("wake_makes_it_immediate", wake)
        .test("each_change_is_handed_out_once", once)
        .test("what_commits_late_is_not_passed_over", late)
        .test("what_flare_stores_is_not_handed_out", of_flare)
        .test("a_queue_here_has_its_tasks_by_the_commit", by_the_commit)
}

/// A node on PostgreSQL whose queue is in its memory, with one client.
struct Shop {
    backend: PostgresBackend,
    delivery: Arc<RecordingDelivery>,
    host: Client,
    resource: String,
    _running: RuntimeHandle,
}

impl Shop {
    /// Whose reconciler finds nothing in time.
    async fn open(scratch: &Scratch, look_every: Duration, poll_every: Duration) -> Self {
        let config = scratch.config().look_every(look_every).poll_every(poll_every);
        let backend = PostgresBackend::connect(config).await.unwrap();
        let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
        let (flare, runtime) = Flare::builder(backend.clone())
            .queue(MemoryBackend::new().queue())
            .settings(Settings::default().reconcile_every(NEVER))
            .delivery(Arc::clone(&delivery) as _)
            .build()
            .unwrap();
        let _running = runtime.spawn();
        let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
        let orders = flare.create_resource(orders).await.unwrap();
        let client = SubscriptionSpec::post("http://client.example/");
        flare.create_subscription(orders.id, client).await.unwrap();
        let resource = orders.id.to_string();
        Self { backend, delivery, host: scratch.connect().await, resource, _running }
    }

    /// Waits until the client was told so often; gives how long that took.
    #[allow(clippy::disallowed_methods, reason = "a real server's clients are told in real time")]
    async fn told(&self, times: u64) -> Duration {
        let began = Instant::now();
        self.delivery.wait_for(times).await;
        began.elapsed()
    }
}

/// Nearly each of them: the machine has other things to do.
fn assert_soon(mut took: Vec<Duration>, within: Duration) {
    took.sort();
    assert!(took[took.len() / 2] < within, "{took:?}");
}

/// By every way to put, one after the other.
async fn commits_reach_clients(uri: String) {
    let scratch = Scratch::new(&uri);
    let mut shop = Shop::open(&scratch, Duration::from_millis(500), NEVER).await;
    let schema = scratch.name.clone();
    let table = format!(
        "CREATE TABLE {schema}.bills (id bigint PRIMARY KEY, rev bigint); SELECT {schema}.watch('{schema}.bills', '{}', \
         'http://shop.example/orders/bill-{{id}}', 'rev', 'raise')",
        shop.resource
    );
    shop.host.batch_execute(&table).await.unwrap();
    let (mut told, mut took) = (0, Vec::new());
    for n in 0..4_u64 {
        let put = format!("SELECT {schema}.put('{}', '{}')", order(n), at(1));
        let rolled_back = format!("SELECT {schema}.put('{}', '{}')", order(100 + n), at(1));
        let statements = [
            format!("BEGIN; {rolled_back}; ROLLBACK; BEGIN; {put}; COMMIT"),
            format!("SELECT {schema}.delete('{}')", order(n)),
            format!("INSERT INTO {schema}.bills VALUES ({n}, 1)"),
            format!("UPDATE {schema}.bills SET rev = 2 WHERE id = {n}"),
        ];
        for statement in statements {
            shop.host.batch_execute(&statement).await.unwrap();
            told += 1;
            took.push(shop.told(told).await);
        }
        let transaction = shop.host.transaction().await.unwrap();
        shop.backend.put_in(&transaction, [(order(50 + n), at(1))]).await.unwrap();
        transaction.commit().await.unwrap();
        told += 1;
        took.push(shop.told(told).await);
    }
    assert_soon(took, SECOND);
    assert_eq!(shop.delivery.total(), told);
}

async fn wake(uri: String) {
    let scratch = Scratch::new(&uri);
    let mut shop = Shop::open(&scratch, NEVER, NEVER).await;
    let mut took = Vec::new();
    for n in 0..10_u64 {
        let transaction = shop.host.transaction().await.unwrap();
        shop.backend.put_in(&transaction, [(order(n), at(1))]).await.unwrap();
        transaction.commit().await.unwrap();
        shop.backend.wake();
        took.push(shop.told(n + 1).await);
    }
    assert_soon(took, SECOND);
}

async fn take(backend: &PostgresBackend, limit: usize) -> Vec<Undispatched> {
    backend.repository().take_puts_beside(limit, Duration::ZERO).await.unwrap()
}

async fn once(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    with_orders(&backend).await;
    assert!(backend.repository().facts().puts_beside);
    let mut host = scratch.connect().await;
    let transaction = host.transaction().await.unwrap();
    let orders = |rev| (0..2_500_u64).map(move |n| (order(n), at(rev)));
    backend.put_in(&transaction, orders(1)).await.unwrap();
    transaction.commit().await.unwrap();
    // Two nodes, and no more than was asked for but for what lies in one list.
    let mut seen = BTreeMap::new();
    loop {
        let (one, other) = tokio::join!(take(&backend, 10), take(&backend, 10));
        assert!(one.len() <= 1_000 && other.len() <= 1_000);
        if one.is_empty() && other.is_empty() {
            break;
        }
        for found in one.into_iter().chain(other) {
            assert_eq!(found.version, Version::live(1.into()));
            *seen.entry(found.key.url).or_insert(0) += 1;
        }
    }
    assert!(seen.len() == 2_500 && seen.values().all(|times| *times == 1), "{}", seen.len());
    // A newer version is another change, also of what still waits to be spread; an equal one is none.
    let newer = format!("SELECT {}.put('{}', '{}')", scratch.name, order(7), at(2));
    host.batch_execute(&newer).await.unwrap();
    host.batch_execute(&newer).await.unwrap();
    let found = take(&backend, 10).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].version, Version::live(2.into()));
    // What was spread meanwhile has nothing left to tell.
    host.batch_execute(&newer.replace(":2}", ":3}")).await.unwrap();
    let spread = vec![(found[0].key.clone(), Version::live(3.into()))];
    backend.repository().mark_dispatched(spread).await.pop().unwrap().unwrap();
    assert_eq!(take(&backend, 10).await, []);
}

async fn late(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    with_orders(&backend).await;
    let (mut slow, host) = (scratch.connect().await, scratch.connect().await);
    let transaction = slow.transaction().await.unwrap();
    backend.put_in(&transaction, [(order(1), at(1))]).await.unwrap();
    let put = format!("SELECT {}.put('{}', '{}')", scratch.name, order(2), at(1));
    host.batch_execute(&put).await.unwrap();
    let urls = |found: Vec<Undispatched>| -> Vec<String> {
        found.into_iter().map(|found| found.key.url.to_string()).collect()
    };
    assert_eq!(urls(take(&backend, 10).await), [order(2)]);
    transaction.commit().await.unwrap();
    assert_eq!(urls(take(&backend, 10).await), [order(1)]);
    assert_eq!(take(&backend, 10).await, []);
}

async fn store(backend: &PostgresBackend, resource: &Resource, n: u64, rev: i64) {
    let url = DocumentUrl::parse(&order(n)).unwrap();
    let (revision, content) = Content::parse(&resource.change, at(rev).into()).unwrap();
    let write = DocumentWrite::put(DocumentKey::new(resource.id, url), revision, content);
    backend.repository().write_documents(vec![write]).await.pop().unwrap().unwrap();
}

async fn of_flare(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let resource = with_orders(&backend).await;
    let host = scratch.connect().await;
    for n in 0..3 {
        store(&backend, &resource, n, 1).await;
    }
    assert_eq!(take(&backend, 10).await, []);
    // One that still waits to be spread, and whose task says nothing of what a host puts then.
    let put = format!("SELECT {}.put('{}', '{}')", scratch.name, order(1), at(2));
    host.batch_execute(&put).await.unwrap();
    let found = take(&backend, 10).await;
    assert_eq!((found.len(), found[0].version), (1, Version::live(2.into())));
}

async fn by_the_commit(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    with_orders(&backend).await;
    let host = scratch.connect().await;
    let put = |n| format!("SELECT {}.put('{}', '{}')", scratch.name, order(n), at(1));
    // Before any node has made the queue.
    host.batch_execute(&put(1)).await.unwrap();
    backend.queue().create(&QueueName::Partition).await.unwrap();
    host.batch_execute(&put(2)).await.unwrap();
    let found = take(&backend, 10).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].key.url.as_str(), order(1));
    assert_eq!(backend.queue().depth(&QueueName::Partition).await.unwrap().ready, 1);
}
