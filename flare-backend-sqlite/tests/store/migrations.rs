//! A file of an earlier Flare: opened, it becomes one of this version with everything that was in it.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_sqlite::SqliteUpkeep;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::{Part, Purpose, Upkeep};
use flare_core::{Flare, Runtime};
use flare_testkit::RecordingDelivery;

use crate::support::Scratch;

const DOCUMENTS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);
const NEWEST: i64 = 4;
/// What version 4 added, taken away again.
const BACK_TO_3: &str = "DROP TABLE audit; PRAGMA user_version = 3";
/// The same of version 3, after that.
const BACK_TO_2: &str = "DROP TABLE consumers; DROP TABLE consumer_states; DROP TABLE rejects; \
                         PRAGMA user_version = 2";
/// The same of version 2, after that.
const BACK_TO_1: &str = "DROP INDEX messages_holder; ALTER TABLE messages DROP COLUMN holder; \
                         DROP VIEW documents_v; DROP VIEW deliveries_v; DROP VIEW lag_v; PRAGMA user_version = 1";

async fn open(scratch: &Scratch, client: &RecordingDelivery) -> (Flare, Runtime) {
    let builder = Flare::builder(scratch.open()).delivery(Arc::new(client.clone()));
    let (flare, runtime) = builder.build().unwrap();
    let docs = NewResource::new("http://api.example/docs/{id}").change_field("rev");
    let docs = flare.ensure_resource(docs).await.unwrap();
    let spec = SubscriptionSpec::post("http://client.example/{id}");
    flare.ensure_subscription(docs.id, spec).await.unwrap();
    (flare, runtime)
}

async fn put_all(flare: &Flare, revision: i64) {
    for number in 0..DOCUMENTS {
        let content = format!("{{\"rev\":{revision}}}");
        flare.put_json(&format!("http://api.example/docs/{number}"), content).await.unwrap();
    }
}

/// A file of an older version, in which clients have the first revision of all documents and wait for the second.
async fn older(scratch: &Scratch, version: i64) {
    let client = RecordingDelivery::default();
    let (flare, runtime) = open(scratch, &client).await;
    put_all(&flare, 1).await;
    let running = runtime.spawn();
    flare.settled(PATIENCE).await.unwrap();
    running.drain(PATIENCE).await.unwrap();
    let (flare, runtime) = open(scratch, &client).await;
    put_all(&flare, 2).await;
    runtime.unused();
    drop(flare);
    let back = [BACK_TO_3, BACK_TO_2, BACK_TO_1];
    for sql in back.into_iter().take(usize::try_from(NEWEST - version).unwrap()) {
        scratch.connect().execute_batch(sql).unwrap();
    }
    assert_eq!(self::version(scratch), version);
}

fn version(scratch: &Scratch) -> i64 {
    scratch.connect().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_version_1_is_used_on() {
    is_used_on(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_version_2_is_used_on() {
    is_used_on(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_version_3_is_used_on() {
    is_used_on(3).await;
}

async fn is_used_on(before: i64) {
    let scratch = Scratch::new();
    older(&scratch, before).await;
    let client = RecordingDelivery::default();
    let (flare, runtime) = open(&scratch, &client).await;
    assert_eq!(version(&scratch), NEWEST);
    let running = runtime.spawn();
    flare.settled(PATIENCE).await.unwrap();
    running.drain(PATIENCE).await.unwrap();
    let told = client.requests();
    assert_eq!(told.len(), DOCUMENTS, "each of them once");
    for told in told {
        assert_eq!(told.request.version.revision().get(), 2, "{}", told.request.document);
    }
    let count = "SELECT count(*) FROM documents_v";
    let seen: i64 = scratch.connect().query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(seen).unwrap(), DOCUMENTS, "people see it too");
    // What came with a later version is there as in a new file.
    let upkeep = SqliteUpkeep::new(&scratch.config(), Part::Repository);
    for purpose in [Purpose::Setup, Purpose::Fixup] {
        assert_eq!(upkeep.plan(purpose).await.unwrap(), []);
    }
}

/// A version and what belongs to it are there together, or neither is.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let scratch = Scratch::new();
    older(&scratch, 1).await;
    // In the way of the migration's last statement.
    scratch.connect().execute_batch("CREATE INDEX messages_holder ON messages (at)").unwrap();
    let refused = flare_backend_sqlite::SqliteBackend::with_config(&scratch.config()).unwrap_err();
    assert!(refused.to_string().contains("messages_holder"), "{refused}");
    assert_eq!(version(&scratch), 1);
    scratch.connect().execute_batch("DROP INDEX messages_holder").unwrap();
    let (flare, runtime) = open(&scratch, &RecordingDelivery::default()).await;
    runtime.unused();
    assert_eq!(
        flare.document("http://api.example/docs/3").await.unwrap().version.revision().get(),
        2
    );
}
