//! Connections: a silent address costs its share of the time, what nobody waits for any more ends on the server,
//! and a server's connection never runs another client's statement.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_backend_postgres::{
    PostgresBackend, PostgresConfig, PostgresLease, PostgresQueue, PostgresRepository,
};
use flare_core::port::{Clock, Lease, Page, Queue, QueueName, Receive, ResourceStore, SystemClock};
use flare_core::prelude::*;
use flare_core::{ErrorKind, Flare};
use flare_testkit::{RecordingDelivery, Trials};
use tracing::subscriber::DefaultGuard;

use crate::support::Scratch;

/// Adds what is tried on a server.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("connections")
        .test("a_silent_address_leaves_time_for_the_next", silent_first)
        .test("what_takes_too_long_ends_on_the_server", cancelled)
        .test("a_schema_that_is_a_word_of_the_language_is_refused", reserved)
        .test("a_direct_connection_says_that_statements_are_remembered", says_direct)
}

/// Adds what is tried behind a pooler.
pub(crate) fn pooled(all: Trials) -> Trials {
    all.of("connections")
        .test("what_takes_too_long_ends_on_the_server", cancelled)
        .test("what_is_put_through_a_pooler_reaches_clients", journey)
        .test("a_pooled_connection_remembers_no_statement", not_remembered)
        .test("a_pooled_connection_says_that_statements_are_not_remembered", says_pooled)
}

/// Where nobody answers: the system takes connections, and no one reads from them.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

async fn silent_first(uri: String) {
    let scratch = Scratch::new(&uri);
    PostgresLease::connect(scratch.config()).await.unwrap();
    let (_kept, address) = silent();
    let both = uri.replacen('@', &format!("@{address},"), 1);
    let config = PostgresConfig::new(&both).schema(&scratch.name).timeout(Duration::from_secs(10));
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let lease = PostgresLease::connect(config).await.unwrap();
    lease.grant(Duration::from_secs(10)).await.unwrap();
    let took = clock.monotonic() - began;
    assert!(took < Duration::from_secs(5), "{took:?}");
    // What answered is asked first from then on: three more connections cost no share more.
    let began = clock.monotonic();
    let some = futures::future::join_all((0..3).map(|_| lease.grant(Duration::from_secs(10))));
    assert!(some.await.into_iter().all(|granted| granted.is_ok()));
    let took = clock.monotonic() - began;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// A table is locked, calls give up; nothing of them is left waiting there.
async fn cancelled(uri: String) {
    const CONNECTIONS: usize = 3;
    let scratch = Scratch::new(&uri);
    PostgresRepository::connect(scratch.config()).await.unwrap();
    let config = scratch.config().timeout(Duration::from_millis(400)).pool_limit(CONNECTIONS);
    let store = PostgresRepository::connect(config).await.unwrap();
    let mut host = scratch.connect().await;
    let host = host.transaction().await.unwrap();
    let lock = format!("LOCK TABLE {}.resources IN ACCESS EXCLUSIVE MODE", scratch.name);
    host.batch_execute(&lock).await.unwrap();
    // Those that wait for the lock of this test alone.
    let waiting = format!(
        "SELECT count(*) FROM pg_locks l WHERE NOT l.granted AND l.relation = '{}.resources'::regclass",
        scratch.name
    );
    for _ in 0..4 {
        let calls = (0..CONNECTIONS).map(|_| store.list_resources(Page::new(10, 0)));
        for answer in futures::future::join_all(calls).await {
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::Timeout);
        }
        let left: i64 = host.query_one(&waiting, &[]).await.unwrap().get(0);
        assert!(usize::try_from(left).unwrap() <= CONNECTIONS, "{left} wait");
    }
    // The last of them are given up when the server has been told.
    let clock = SystemClock::new();
    let give_up_at = clock.monotonic() + Duration::from_secs(20);
    loop {
        let left: i64 = host.query_one(&waiting, &[]).await.unwrap().get(0);
        if left == 0 {
            break;
        }
        assert!(clock.monotonic() < give_up_at, "{left} still wait");
        clock.sleep(Duration::from_millis(50)).await;
    }
    host.rollback().await.unwrap();
    store.list_resources(Page::new(10, 0)).await.unwrap();
}

async fn reserved(uri: String) {
    for word in ["order", "user", "left"] {
        let config = PostgresConfig::new(&uri).schema(word).create_missing();
        let error = PostgresQueue::connect(config).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("schema")), "{error}");
    }
}

/// How many statements the server's connections remember that use this schema.
async fn remembered_in(scratch: &Scratch) -> i64 {
    // Behind a pooler each open transaction has one of the server's connections to itself.
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(scratch.connect().await);
    }
    let mut found = 0;
    for client in &clients {
        client.batch_execute("BEGIN").await.unwrap();
        let sql = format!(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%{}.%'",
            scratch.name
        );
        let rows = client.simple_query(&sql).await.unwrap();
        for row in rows {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = row {
                found += row.get(0).unwrap().parse::<i64>().unwrap();
            }
        }
    }
    found
}

/// Works with one connection, so that no comparison of two could tell.
async fn work(scratch: &Scratch) -> PostgresQueue {
    let queue = PostgresQueue::connect(scratch.config().pool_limit(1)).await.unwrap();
    let name = QueueName::Partition;
    queue.create(&name).await.unwrap();
    for _ in 0..5 {
        let request = Receive::new(1, Duration::from_secs(1));
        assert!(queue.receive(&name, request).await.unwrap().is_empty());
    }
    queue
}

async fn not_remembered(uri: String) {
    let scratch = Scratch::new(&uri);
    let _kept = work(&scratch).await;
    assert_eq!(remembered_in(&scratch).await, 0);
}

/// Two nodes and a host's own transactions, all through the pooler.
async fn journey(uri: String) {
    const ORDERS: u64 = 40;
    let scratch = Scratch::new(&uri);
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let node = async || {
        let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
        let (flare, runtime) =
            Flare::builder(backend.clone()).delivery(Arc::clone(&delivery) as _).build().unwrap();
        (backend, flare, runtime.spawn())
    };
    let (backend, flare, _first) = node().await;
    let (_, _, _second) = node().await;
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
    let orders = flare.create_resource(orders).await.unwrap();
    let client = SubscriptionSpec::post("http://client.example/");
    flare.create_subscription(orders.id, client).await.unwrap();
    let mut host = scratch.connect().await;
    for number in 0..ORDERS / 2 {
        let url = |number: u64| format!("http://shop.example/orders/{number}");
        flare.put_json(&url(number), r#"{"rev":1}"#).await.unwrap();
        let transaction = host.transaction().await.unwrap();
        let put = [(url(number + ORDERS / 2), r#"{"rev":1}"#)];
        backend.put_in(&transaction, put).await.unwrap();
        transaction.commit().await.unwrap();
    }
    let told = delivery.wait_for(ORDERS).await;
    let told: BTreeSet<String> =
        told.iter().map(|told| told.request.document.as_str().to_owned()).collect();
    assert_eq!(told.len() as u64, ORDERS);
}

/// What is said on this thread for as long as it is kept.
pub(crate) struct Said {
    lines: Lines,
    _kept: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Said {
    pub(crate) fn begin() -> Self {
        let lines = Lines::default();
        let writer = lines.clone();
        let said = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        Self { lines, _kept: tracing::subscriber::set_default(said.finish()) }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }
}

/// What is said while a queue connects.
async fn said(uri: &str) -> String {
    let said = Said::begin();
    PostgresQueue::connect(Scratch::new(uri).config().pool_limit(1)).await.unwrap();
    said.text()
}

async fn says_direct(uri: String) {
    let said = said(&uri).await;
    assert_eq!(said.matches("connected to PostgreSQL").count(), 1, "{said}");
    assert!(said.contains("the server remembers statements"), "{said}");
}

async fn says_pooled(uri: String) {
    let said = said(&uri).await;
    assert_eq!(said.matches("connected to PostgreSQL").count(), 1, "{said}");
    assert!(said.contains("statements are sent whole each time"), "{said}");
}
