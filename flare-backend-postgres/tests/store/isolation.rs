//! Transactions of a host's own above *read committed*, and ones that are open for long.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::port::{Clock, DocumentStore, SystemClock};
use flare_core::prelude::*;
use flare_testkit::{RecordingDelivery, Trials};
use tokio_postgres::{Client, IsolationLevel, Transaction};

use crate::plain_sql::insert;
use crate::support::Scratch;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("isolation")
        .test("a_host_that_lost_a_race_tries_again_as_a_whole", lost_races)
        .test("a_late_commit_is_told_like_any_other", late_commit)
}

/// How a host may put.
#[derive(Debug, Clone, Copy)]
enum Way {
    Rust,
    Sql,
}

async fn begin(client: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    client.build_transaction().isolation_level(level).start().await.unwrap()
}

/// Whether it was put; not if another transaction was faster.
async fn put(
    backend: &PostgresBackend,
    schema: &str,
    transaction: &Transaction<'_>,
    (way, revision): (Way, i64),
) -> bool {
    let (url, json) = ("http://shop.example/orders/1", format!(r#"{{"rev":{revision}}}"#));
    let code = match way {
        Way::Rust => {
            let Err(error) = backend.put_in(transaction, [(url, json)]).await else { return true };
            let source = std::error::Error::source(&error);
            let source = source.and_then(|it| it.downcast_ref::<tokio_postgres::Error>());
            source.and_then(|source| source.code().cloned())
        }
        Way::Sql => {
            let sql = format!("SELECT {schema}.put($1, $2::text)");
            let Err(error) = transaction.query_one(&sql, &[&url, &json]).await else { return true };
            error.code().cloned()
        }
    };
    assert_eq!(code.as_ref().map(|code| code.code()), Some("40001"), "{way:?}");
    false
}

async fn lost_races(uri: String) {
    let levels = [IsolationLevel::RepeatableRead, IsolationLevel::Serializable];
    for (way, level) in [Way::Rust, Way::Sql].into_iter().zip(levels.into_iter().cycle()).chain(
        // Each way at each level.
        [Way::Sql, Way::Rust].into_iter().zip(levels),
    ) {
        let scratch = Scratch::new(&uri);
        let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
        let orders = insert(&backend, 1, "http://shop.example/orders/{id}", ("rev", None)).await;
        let (mut first, mut second) = (scratch.connect().await, scratch.connect().await);
        // One that is new to both, and then one that both change.
        for revision in [1, 11] {
            let fast = begin(&mut first, level).await;
            let slow = begin(&mut second, level).await;
            slow.query_one("SELECT count(*) FROM pg_class", &[]).await.unwrap();
            assert!(put(&backend, &scratch.name, &fast, (way, revision)).await);
            fast.commit().await.unwrap();
            let done = put(&backend, &scratch.name, &slow, (way, revision + 1)).await;
            assert!(!done, "{way:?} lost");
            slow.rollback().await.unwrap();
            let again = begin(&mut second, level).await;
            assert!(put(&backend, &scratch.name, &again, (way, revision + 1)).await);
            again.commit().await.unwrap();
        }
        assert_eq!(backend.repository().count_documents(orders.id).await.unwrap(), 1);
    }
}

/// Open while the reconciler looks again and again, with later puts told meanwhile.
async fn late_commit(uri: String) {
    let scratch = Scratch::new(&uri);
    let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
    let clock = Arc::new(SystemClock::new());
    let delivery = Arc::new(RecordingDelivery::new(Arc::clone(&clock) as _));
    let mut settings = Settings::default();
    settings.reconcile_every = Duration::from_millis(300);
    let builder = Flare::builder(backend.clone()).delivery(Arc::clone(&delivery) as _);
    let (flare, runtime) = builder.settings(settings).build().unwrap();
    let running = runtime.spawn();
    let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
    let orders = flare.create_resource(orders).await.unwrap();
    let spec = SubscriptionSpec::post("http://client.example/");
    flare.create_subscription(orders.id, spec).await.unwrap();
    let mut client = scratch.connect().await;
    let late = client.transaction().await.unwrap();
    let json = r#"{"rev":1}"#;
    backend.put_in(&late, [("http://shop.example/orders/late", json)]).await.unwrap();
    let looked = format!("SELECT due FROM {}.jobs WHERE kind = 'reconcile'", scratch.name);
    let watching = scratch.connect().await;
    let (mut looks, mut last) = (0, None);
    for number in 0_u64.. {
        flare.put_json(&format!("http://shop.example/orders/{number}"), json).await.unwrap();
        let due = watching.query_opt(&looked, &[]).await.unwrap().map(|row| row.get::<_, i64>(0));
        looks += u64::from(due != last);
        last = due;
        if looks > 4 {
            delivery.wait_for(number + 1).await;
            break;
        }
        clock.sleep(Duration::from_millis(50)).await;
    }
    let before = delivery.total();
    assert!(delivery.requests().iter().all(|it| !it.request.document.as_str().ends_with("late")));
    late.commit().await.unwrap();
    let told = delivery.wait_for(before + 1).await;
    assert!(told.iter().any(|it| it.request.document.as_str().ends_with("late")));
    drop(running);
}
