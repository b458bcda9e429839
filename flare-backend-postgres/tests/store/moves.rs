//! Documents that two resources match: whoever puts or deletes them inside a transaction finds them where they are
//! stored, and the clients of the resource that they leave are told.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::model::{Action, DocumentKey, DocumentUrl, Resource, Version};
use flare_core::port::{DocumentStore, SystemClock};
use flare_core::prelude::*;
use flare_testkit::{RecordingDelivery, Trials};
use tokio_postgres::Client;

use crate::plain_sql::insert;
use crate::support::Scratch;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("moves")
        .test("a_put_after_the_one_that_moved_it_loses_nothing", puts_in_a_row)
        .test("a_put_finishes_a_move_that_is_noted", a_noted_move)
        .test("a_delete_finds_the_document_where_it_is_stored", deletes)
        .test("a_delete_that_two_rules_read_differently_is_refused", two_rules)
}

const URLS: [&str; 2] = ["http://shop.example/orders/1", "http://shop.example/orders/2"];

/// Puts a document as often as there are revisions, in one transaction: by SQL, or from Rust.
async fn put_all(
    backend: &PostgresBackend,
    scratch: &Scratch,
    client: &mut Client,
    url: &str,
    revisions: &[i64],
) {
    let transaction = client.transaction().await.unwrap();
    for revision in revisions {
        let json = format!(r#"{{"rev":{revision}}}"#);
        if url == URLS[0] {
            let sql = format!("SELECT {}.put($1, $2::text)", scratch.name);
            transaction.query_one(&sql, &[&url, &json]).await.unwrap();
        } else {
            backend.put_in(&transaction, [(url, json)]).await.unwrap();
        }
    }
    transaction.commit().await.unwrap();
    backend.wake();
}

/// The move is noted by the first put; the second one, before the reconciler has looked, must not have it forgotten.
#[allow(clippy::disallowed_methods, reason = "the clients of a real server are told in real time")]
async fn puts_in_a_row(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let (flare, runtime) =
        Flare::builder(backend.clone()).delivery(Arc::clone(&delivery) as _).build().unwrap();
    let running = runtime.spawn();
    let mut client = scratch.connect().await;
    let all = NewResource::new("http://shop.example/{kind}/{id}").change_field("rev");
    let all = flare.create_resource(all).await.unwrap();
    let former = SubscriptionSpec::post("http://former.example/");
    let former = flare.create_subscription(all.id, former).await.unwrap().id;
    for url in URLS {
        put_all(&backend, &scratch, &mut client, url, &[7]).await;
    }
    delivery.wait_for(2).await;
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
    let orders = flare.create_resource(orders).await.unwrap();
    let client_of_orders = SubscriptionSpec::post("http://client.example/");
    flare.create_subscription(orders.id, client_of_orders).await.unwrap();
    for url in URLS {
        put_all(&backend, &scratch, &mut client, url, &[1, 2]).await;
    }
    let told = |told: &flare_testkit::Recorded| {
        told.request.subscription == former && told.request.action == Action::Delete
    };
    let mut count = 2;
    let both = async {
        while delivery.requests().iter().filter(|it| told(it)).count() < 2 {
            count += 1;
            delivery.wait_for(count).await;
        }
    };
    let both = tokio::time::timeout(Duration::from_secs(20), both).await;
    assert!(
        both.is_ok(),
        "the clients of the resource it left are told: {:?}",
        delivery.requests()
    );
    drop(running);
}

async fn version(backend: &PostgresBackend, resource: &Resource, url: &str) -> Option<Version> {
    let key = DocumentKey::new(resource.id, DocumentUrl::parse(url).unwrap());
    let found = backend.repository().documents(vec![key]).await.unwrap().pop().flatten();
    found.map(|found| {
        assert_eq!(found.moved_from, None, "{url}");
        found.version
    })
}

fn live(revision: i64) -> Option<Version> {
    Some(Version::live(revision.into()))
}

fn gone(revision: i64) -> Option<Version> {
    Some(Version::gone(revision.into()))
}

/// As a put through Flare leaves it whose process died before the former document was gone.
async fn a_noted_move(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let all = insert(&backend, 1, "http://shop.example/{kind}/{id}", ("rev", None)).await;
    let mut client = scratch.connect().await;
    for url in URLS {
        put_all(&backend, &scratch, &mut client, url, &[7]).await;
    }
    let orders = insert(&backend, 2, "http://shop.example/orders/{id}", ("rev", None)).await;
    for url in URLS {
        use flare_core::model::{Content, MovedFrom, Revision};
        use flare_core::port::DocumentWrite;
        let key = DocumentKey::new(orders.id, DocumentUrl::parse(url).unwrap());
        let content = Content::from_stored(bytes::Bytes::from_static(br#"{"rev":1}"#));
        let mut write = DocumentWrite::put(key, Revision::new(1), content);
        write.moved_from = Some(MovedFrom::new(all.id, Version::live(7.into())));
        backend.repository().write_documents(vec![write]).await.pop().unwrap().unwrap();
        // The same revision again: nothing is stored, and yet the move is finished.
        put_all(&backend, &scratch, &mut client, url, &[1]).await;
        assert_eq!(version(&backend, &all, url).await, gone(7), "{url}");
        assert_eq!(version(&backend, &orders, url).await, live(1), "{url}");
    }
}

async fn deletes(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let all = insert(&backend, 1, "http://shop.example/{kind}/{id}", ("rev", None)).await;
    let mut client = scratch.connect().await;
    for url in URLS {
        put_all(&backend, &scratch, &mut client, url, &[7]).await;
    }
    let orders = insert(&backend, 2, "http://shop.example/orders/{id}", ("rev", None)).await;
    let answers = delete_both(&backend, &scratch, &mut client).await;
    assert_eq!(answers, ["deleted"; 2]);
    for url in URLS {
        assert_eq!(version(&backend, &all, url).await, gone(7), "{url}");
        assert_eq!(version(&backend, &orders, url).await, None, "{url}");
    }
    assert_eq!(delete_both(&backend, &scratch, &mut client).await, ["unchanged"; 2]);
    for url in URLS {
        put_all(&backend, &scratch, &mut client, url, &[3]).await;
    }
    assert_eq!(delete_both(&backend, &scratch, &mut client).await, ["deleted"; 2]);
    for url in URLS {
        assert_eq!(version(&backend, &all, url).await, gone(7), "{url}");
        assert_eq!(version(&backend, &orders, url).await, gone(3), "{url}");
    }
}

/// Deletes one by SQL and one from Rust.
async fn delete_both(
    backend: &PostgresBackend,
    scratch: &Scratch,
    client: &mut Client,
) -> [String; 2] {
    let sql = format!("SELECT {}.delete($1)", scratch.name);
    let by_sql = client.query_one(&sql, &[&URLS[0]]).await.unwrap().get(0);
    let transaction = client.transaction().await.unwrap();
    let answers = backend.delete_in(&transaction, [(URLS[1], None)]).await.unwrap();
    transaction.commit().await.unwrap();
    [by_sql, answers[0].as_str().to_owned()]
}

async fn two_rules(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    insert(&backend, 1, "http://shop.example/{kind}/{id}", ("rev", None)).await;
    insert(&backend, 2, "http://shop.example/orders/{id}", ("at", Some("rfc3339"))).await;
    let mut client = scratch.connect().await;
    let transaction = client.transaction().await.unwrap();
    let time = Some("2024-05-01T12:00:00Z".to_owned());
    let error = backend.delete_in(&transaction, [(URLS[0], time)]).await.unwrap_err();
    assert!(error.to_string().contains("differently"), "{error}");
    assert_eq!(error.field(), Some("revision"));
    let answers = backend.delete_in(&transaction, [(URLS[0], None)]).await.unwrap();
    assert_eq!(answers[0].as_str(), "unchanged");
}
