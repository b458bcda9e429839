//! What a person sees who opens the file: plain SQL, names instead of numbers.

use std::sync::Arc;
use std::time::Duration;

use flare_core::Flare;
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::DeliveryOutcome;
use flare_testkit::RecordingDelivery;
use rusqlite::Connection;

use crate::support::Scratch;

/// All rows of a query, each as text with bars.
fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let text = |at: usize| match row.get_ref(at).unwrap() {
            rusqlite::types::ValueRef::Null => "-".to_owned(),
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => panic!("{other:?} is nothing for people"),
        };
        Ok((0..columns).map(text).collect::<Vec<_>>().join("|"))
    };
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn people_read_documents_deliveries_and_lag() {
    let scratch = Scratch::new();
    let client = RecordingDelivery::default().answering(|request| {
        let status = if request.url.ends_with("/refused") { 500 } else { 204 };
        DeliveryOutcome::answered(status)
    });
    let builder = Flare::builder(scratch.open()).delivery(Arc::new(client));
    let (flare, runtime) = builder.build().unwrap();
    let docs = NewResource::new("http://api.example/docs/{id}").change_field("rev");
    let docs = flare.create_resource(docs).await.unwrap();
    let never = RetryPolicy::builder().num_retries(0).build().unwrap();
    let spec = SubscriptionSpec::post("http://client.example/{id}").retry(never);
    let told = flare.create_subscription(docs.id, spec).await.unwrap();
    let waits = SubscriptionSpec::post("http://paused.example/{id}");
    let waits = flare.create_subscription(docs.id, waits).await.unwrap();
    flare.pause(waits.id).await.unwrap();
    for name in ["told", "refused", "gone"] {
        let url = format!("http://api.example/docs/{name}");
        flare.put_json(&url, format!("{{\"rev\":7,\"name\":\"{name}\"}}")).await.unwrap();
    }
    let running = runtime.spawn();
    let connection = scratch.connect();
    let settled = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    while settled("SELECT count(*) FROM deliveries_v WHERE state <> 'pending'") < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    flare.delete_document("http://api.example/docs/gone").await.unwrap();
    let told_of_it = "SELECT count(*) FROM deliveries_v NATURAL JOIN (SELECT url FROM documents_v WHERE \
                      documents_v.state = 'gone' AND spread = 'yes') \
                      WHERE deliveries_v.state = 'settled' AND present = 'no'";
    while settled(told_of_it) != 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(running);

    let docs = docs.id;
    assert_eq!(
        rows(
            &connection,
            "SELECT url, resource, revision, state, spread, content FROM documents_v ORDER BY url"
        ),
        [
            format!(
                "http://api.example/docs/gone|{docs}|7|gone|yes|{{\"rev\":7,\"name\":\"gone\"}}"
            ),
            format!(
                "http://api.example/docs/refused|{docs}|7|live|yes|{{\"rev\":7,\"name\":\"refused\"}}"
            ),
            format!(
                "http://api.example/docs/told|{docs}|7|live|yes|{{\"rev\":7,\"name\":\"told\"}}"
            ),
        ]
    );
    let of = |id| {
        let sql = format!(
            "SELECT url, state, wanted, settled, given_up, present, attempts FROM deliveries_v \
             WHERE subscription = '{id}' ORDER BY url"
        );
        rows(&connection, &sql)
    };
    assert_eq!(
        of(told.id),
        [
            "http://api.example/docs/gone|settled|7|7|-|no|0",
            "http://api.example/docs/refused|dead letter|7|-|7|maybe|0",
            "http://api.example/docs/told|settled|7|7|-|yes|0",
        ]
    );
    assert_eq!(of(waits.id).len(), 3);
    assert_eq!(
        rows(
            &connection,
            "SELECT subscription, url, status, pending, dead_letters FROM lag_v ORDER BY url"
        ),
        [
            format!("{}|http://client.example/{{id}}|active|0|1", told.id),
            format!("{}|http://paused.example/{{id}}|paused|3|0", waits.id),
        ]
    );
    // Times are for people too.
    let times = "SELECT updated FROM documents_v UNION SELECT since FROM deliveries_v \
                 UNION SELECT since FROM lag_v WHERE since IS NOT NULL";
    for time in rows(&connection, times) {
        assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    }
}
