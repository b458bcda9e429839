//! Documents that are put inside a host's own transaction: committed with it or never seen, decided as any other
//! put, told to clients by the commit alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flare_backend_postgres::PostgresBackend;
use flare_core::model::{
    ChangeRule, DocumentChange, DocumentUrl, Endpoint, IdSource, Resource, Timestamp, Version,
    detect_delete, detect_put,
};
use flare_core::port::{DocumentStore, ResourceStore, SystemClock};
use flare_core::prelude::*;
use flare_core::{Flare, Settings};
use flare_testkit::{RecordingDelivery, Trials};

use crate::support::Scratch;

const URL: &str = "http://shop.example/orders";

pub(crate) async fn with_orders(backend: &PostgresBackend) -> Resource {
    let endpoint = Endpoint::parse("http://shop.example/orders/{id}").unwrap();
    let change = ChangeRule::new("rev", None).unwrap();
    let now = Timestamp::from_unix_seconds(1_700_000_000);
    let resource = Resource::new(IdSource::seeded(1).next(now).into(), endpoint, change, now);
    backend.repository().insert_resource(resource.clone()).await.unwrap();
    resource
}

pub(crate) fn order(number: u64) -> String {
    format!("{URL}/{number}")
}

pub(crate) fn at(revision: i64) -> String {
    format!(r#"{{"rev":{revision}}}"#)
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("transactions")
        .test("what_is_rolled_back_was_never_there", rolled_back)
        .test("what_is_committed_reaches_clients", committed)
        .test("wake_makes_it_immediate", wake)
        .test("savepoints_take_their_puts_back", savepoints)
        .test("answers_are_those_of_the_rules", rules)
        .test("what_is_wrong_is_refused_by_its_name", refused)
}

async fn rolled_back(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let resource = with_orders(&backend).await;
    let mut client = scratch.connect().await;
    let transaction = client.transaction().await.unwrap();
    let changes = backend.put_in(&transaction, [(order(1), at(1)), (order(2), at(1))]).await;
    assert_eq!(changes.unwrap(), [DocumentChange::Created; 2]);
    transaction.rollback().await.unwrap();
    assert_eq!(backend.repository().count_documents(resource.id).await.unwrap(), 0);
    assert_eq!(backend.repository().count_undispatched(None).await.unwrap(), 0);
}

async fn committed(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let (flare, runtime) =
        Flare::builder(backend.clone()).delivery(Arc::clone(&delivery) as _).build().unwrap();
    let running = runtime.spawn();
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
    let orders = flare.create_resource(orders).await.unwrap();
    let client = SubscriptionSpec::post("http://client.example/");
    flare.create_subscription(orders.id, client).await.unwrap();

    let mut host = scratch.connect().await;
    host.batch_execute("CREATE TEMPORARY TABLE orders (id bigint)").await.unwrap();
    for number in 0..20_u64 {
        let transaction = host.transaction().await.unwrap();
        let id = i64::try_from(number).unwrap();
        transaction.execute("INSERT INTO orders VALUES ($1)", &[&id]).await.unwrap();
        backend.put_in(&transaction, [(order(number), at(1))]).await.unwrap();
        match number % 5 {
            0 => transaction.rollback().await.unwrap(),
            _ => transaction.commit().await.unwrap(),
        }
        backend.wake();
    }
    let told = delivery.wait_for(16).await;
    let told: Vec<String> =
        told.iter().map(|told| told.request.document.as_str().to_owned()).collect();
    for number in 0..20_u64 {
        let seen = told.iter().filter(|url| **url == order(number)).count();
        assert_eq!(seen, usize::from(number % 5 != 0), "{number} in {told:?}");
    }
    assert_eq!(delivery.total(), 16);
    drop(running);
}

/// Where nothing is polled for and no reconciler looks in time. A worker's wait at the queue is what else would end.
#[allow(clippy::disallowed_methods, reason = "the clients of a real server are told in real time")]
async fn wake(uri: String) {
    const NEVER: Duration = Duration::from_hours(1);
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config().poll_every(NEVER)).await.unwrap();
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let (flare, runtime) = Flare::builder(backend.clone())
        .settings(Settings::default().reconcile_every(NEVER))
        .delivery(Arc::clone(&delivery) as _)
        .build()
        .unwrap();
    let running = runtime.spawn();
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
    let orders = flare.create_resource(orders).await.unwrap();
    let client = SubscriptionSpec::post("http://client.example/");
    flare.create_subscription(orders.id, client).await.unwrap();
    // What is told of the first one shows that all is set up.
    flare.put_json(&order(0), at(1)).await.unwrap();
    delivery.wait_for(1).await;

    let mut host = scratch.connect().await;
    let mut took = Vec::new();
    for number in 1..11_u64 {
        let transaction = host.transaction().await.unwrap();
        backend.put_in(&transaction, [(order(number), at(1))]).await.unwrap();
        transaction.commit().await.unwrap();
        backend.wake();
        let began = Instant::now();
        delivery.wait_for(number + 1).await;
        took.push(began.elapsed());
    }
    took.sort();
    assert!(took[took.len() / 2] < Duration::from_secs(1), "{took:?}");
    drop(running);
}

async fn savepoints(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let resource = with_orders(&backend).await;
    let mut client = scratch.connect().await;
    let mut transaction = client.transaction().await.unwrap();
    backend.put_in(&transaction, [(order(1), at(1))]).await.unwrap();
    let inner = transaction.transaction().await.unwrap();
    backend.put_in(&inner, [(order(1), at(2)), (order(2), at(1))]).await.unwrap();
    inner.rollback().await.unwrap();
    let again = backend.put_in(&transaction, [(order(1), at(2))]).await.unwrap();
    assert_eq!(again, [DocumentChange::Updated], "the inner one is taken back");
    transaction.commit().await.unwrap();
    assert_eq!(backend.repository().count_documents(resource.id).await.unwrap(), 1);
}

/// Random puts and deletes, some of them of the same document in one call, beside the rules themselves.
async fn rules(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let resource = with_orders(&backend).await;
    let mut client = scratch.connect().await;
    let mut random = fastrand::Rng::with_seed(18);
    let mut stored: Vec<Option<Version>> = vec![None; 5];
    for round in 0..400 {
        let before = stored.clone();
        let transaction = client.transaction().await.unwrap();
        if random.bool() {
            let puts: Vec<(usize, i64)> =
                (0..random.usize(1..4)).map(|_| (random.usize(..5), random.i64(..6))).collect();
            let given = puts.iter().map(|(which, rev)| (order(*which as u64), at(*rev)));
            let answers = backend.put_in(&transaction, given).await.unwrap();
            for ((which, revision), answer) in puts.into_iter().zip(answers) {
                let detected = detect_put(stored[which], revision.into());
                assert_eq!(answer, detected.change, "round {round}");
                stored[which] = detected.store.or(stored[which]);
            }
        } else {
            let (which, named) = (random.usize(..5), random.bool().then(|| random.i64(..6)));
            let given = [(order(which as u64), named.map(|named| named.to_string()))];
            let answers = backend.delete_in(&transaction, given).await.unwrap();
            let detected = detect_delete(stored[which], named.map(Into::into));
            assert_eq!(answers, [detected.change], "round {round}");
            stored[which] = detected.store.or(stored[which]);
        }
        if random.u8(..5) == 0 {
            transaction.rollback().await.unwrap();
            stored = before;
        } else {
            transaction.commit().await.unwrap();
        }
    }
    for (which, version) in stored.into_iter().enumerate() {
        let url = DocumentUrl::parse(&order(which as u64)).unwrap();
        let key = flare_core::model::DocumentKey::new(resource.id, url);
        let found = backend.repository().documents(vec![key]).await.unwrap().pop().flatten();
        assert_eq!(found.map(|document| document.version), version, "{which}");
    }
}

async fn refused(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    with_orders(&backend).await;
    let mut client = scratch.connect().await;
    let transaction = client.transaction().await.unwrap();
    for (url, json, field) in [
        ("http://other.example/1", r#"{"rev":1}"#, "url"),
        ("not a url", r#"{"rev":1}"#, "url"),
        ("http://shop.example/orders/1", r#"{"rev":1.5}"#, "rev"),
        ("http://shop.example/orders/1", r#"{}"#, "rev"),
        ("http://shop.example/orders/1", "[]", "document"),
    ] {
        let error = backend.put_in(&transaction, [(url, json)]).await.unwrap_err();
        let shown = format!("{error} {:?}", error.field());
        assert!(shown.contains(field), "{url} {json}: {shown}");
    }
    // Nothing was sent to the server that it could have refused: the transaction goes on.
    backend.put_in(&transaction, [(order(1), at(1))]).await.unwrap();
    transaction.commit().await.unwrap();
}
