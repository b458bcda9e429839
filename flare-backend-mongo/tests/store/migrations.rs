//! Databases that are not set up, half set up, behind or ahead: each is refused with a sentence that
//! says what to do, or brought to where it should be, by any number of nodes at once.

use std::sync::Arc;

use crate::support::Scratch;
use crate::support::dump::dump;
use flare_backend_mongo::{Migration, MongoConfig, MongoRepository, MongoUpkeep};
use flare_core::ErrorKind;
use flare_core::port::{Part, Purpose, Step, StepKind, StepOutcome, Upkeep};
use flare_testkit::Trials;
use futures::future::{BoxFuture, join_all};
use mongodb::bson::{Document, doc};
use mongodb::{Database, IndexModel};

/// Made up: gives every lane a mark. Dies half-way while there is a record `{_id: "die"}`.
const MARKS: Migration = Migration::of_records(NEXT, "every lane gets a mark", mark);
const WITH_MARKS: &[Migration] = {
    let [first, second, third, fourth, fifth, sixth] = Migration::of_the_repository();
    &[first, second, third, fourth, fifth, sixth, MARKS]
};
/// The version of what is kept today, and of what MARKS leads to.
const TODAY: i32 = Migration::of_the_repository().len() as i32;
const NEXT: i32 = TODAY + 1;

fn mark(database: Database) -> BoxFuture<'static, mongodb::error::Result<()>> {
    Box::pin(async move {
        let lanes = database.collection::<Document>("flare_lanes");
        let mark = doc! { "$set": { "mark": true } };
        lanes.update_one(doc! { "mark": { "$exists": false } }, mark.clone()).await?;
        let orders = database.collection::<Document>("host_orders");
        if orders.find_one(doc! { "_id": "die" }).await?.is_some() {
            return Err(mongodb::error::Error::custom("the node died"));
        }
        lanes.update_many(doc! { "mark": { "$exists": false } }, mark).await.map(|_| ())
    })
}

/// The configuration of somebody who does not create anything.
fn careful(scratch: &Scratch) -> MongoConfig {
    MongoConfig::new(&scratch.uri).database(&scratch.name)
}

async fn repository_upkeep(scratch: &Scratch) -> MongoUpkeep {
    MongoUpkeep::connect(careful(scratch), Part::Repository).await.unwrap()
}

async fn set_up(scratch: &Scratch) {
    MongoRepository::connect(scratch.config()).await.unwrap();
}

async fn recorded(scratch: &Scratch) -> Option<Document> {
    let schema = scratch.database().await.collection::<Document>("flare_schema");
    schema.find_one(doc! { "_id": "repository" }).await.unwrap()
}

async fn record(scratch: &Scratch, record: Document) {
    let schema = scratch.database().await.collection::<Document>("flare_schema");
    schema.replace_one(doc! { "_id": "repository" }, record).upsert(true).await.unwrap();
}

/// Connecting is refused with this kind and these words, and changes nothing.
async fn refused(scratch: &Scratch, config: MongoConfig, kind: ErrorKind, words: &[&str]) {
    let before = dump(&scratch.database().await).await;
    let error = MongoRepository::connect(config).await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for words in words {
        assert!(error.to_string().contains(words), "{error} says {words:?}");
    }
    assert_eq!(dump(&scratch.database().await).await, before);
}

/// Planning for these purposes is refused, applying too, and neither changes anything.
async fn upkeep_refused(scratch: &Scratch, upkeep: &MongoUpkeep, purposes: &[Purpose]) {
    let before = dump(&scratch.database().await).await;
    for purpose in purposes {
        let error = upkeep.plan(*purpose).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{purpose}: {error}");
        let id = "00000000-0000-0000-0000-000000000001";
        let step = match purpose {
            Purpose::Cleanup => Step::delete(format!("rows of subscription {id}"), ""),
            _ => Step::create("collection flare_rows", ""),
        };
        let error = upkeep.apply(*purpose, &step, &()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{purpose}: {error}");
    }
    assert_eq!(dump(&scratch.database().await).await, before);
}

async fn applied(upkeep: &MongoUpkeep, purpose: Purpose) -> Vec<Step> {
    let steps = upkeep.plan(purpose).await.unwrap();
    for step in &steps {
        let outcome = upkeep.apply(purpose, step, &()).await;
        assert_eq!(outcome.unwrap(), StepOutcome::Done, "{}", step.id);
    }
    assert_eq!(upkeep.plan(purpose).await.unwrap(), []);
    steps
}

/// Lanes that a migration can change.
async fn lanes(scratch: &Scratch) {
    let lanes = scratch.database().await.collection::<Document>("flare_lanes");
    lanes.insert_many((0..5).map(|number| doc! { "_id": number })).await.unwrap();
}

async fn marked(scratch: &Scratch) -> u64 {
    let lanes = scratch.database().await.collection::<Document>("flare_lanes");
    lanes.count_documents(doc! { "mark": true }).await.unwrap()
}

async fn several_connect_at_once(uri: String) {
    let scratch = Arc::new(Scratch::new(&uri));
    let nodes = (0..8).map(|_| {
        let scratch = Arc::clone(&scratch);
        tokio::spawn(async move { MongoRepository::connect(scratch.config()).await.map(|_| ()) })
    });
    for node in join_all(nodes).await {
        node.unwrap().unwrap();
    }
    assert_eq!(recorded(&scratch).await, Some(doc! { "_id": "repository", "version": TODAY }));
    let upkeep = repository_upkeep(&scratch).await;
    assert_eq!(upkeep.plan(Purpose::Setup).await.unwrap(), [], "all of it is there");
}

async fn not_set_up(uri: String) {
    let scratch = Scratch::new(&uri);
    let words = ["is not set up", "run `flare setup repository`", "create_missing"];
    refused(&scratch, careful(&scratch), ErrorKind::NotFound, &words).await;
    let upkeep = repository_upkeep(&scratch).await;
    let setup = upkeep.plan(Purpose::Setup).await.unwrap();
    assert_eq!(upkeep.plan(Purpose::Fixup).await.unwrap(), setup, "all of it is missing");
    assert_eq!(upkeep.plan(Purpose::Cleanup).await.unwrap(), []);
    assert_eq!(dump(&scratch.database().await).await.len(), 0);
    applied(&upkeep, Purpose::Setup).await;
    MongoRepository::connect(careful(&scratch)).await.unwrap();
}

async fn died_in_the_first_migration(uri: String) {
    let scratch = Scratch::new(&uri);
    let begun = doc! { "_id": "repository", "version": 0, "running": { "to": 1 } };
    record(&scratch, begun.clone()).await;
    let words = ["migration 1", "begun and not finished", "run `flare setup repository`"];
    refused(&scratch, careful(&scratch), ErrorKind::Conflict, &words).await;
    let upkeep = repository_upkeep(&scratch).await;
    upkeep_refused(&scratch, &upkeep, &[Purpose::Fixup, Purpose::Cleanup]).await;
    applied(&upkeep, Purpose::Setup).await;
    MongoRepository::connect(careful(&scratch)).await.unwrap();
    // Who creates what is missing goes on with it, too.
    record(&scratch, begun).await;
    set_up(&scratch).await;
    assert_eq!(recorded(&scratch).await, Some(doc! { "_id": "repository", "version": TODAY }));
}

async fn died_half_way(uri: String) {
    let scratch = Scratch::new(&uri);
    set_up(&scratch).await;
    lanes(&scratch).await;
    let orders = scratch.database().await.collection::<Document>("host_orders");
    orders.insert_one(doc! { "_id": "die" }).await.unwrap();
    let upkeep = repository_upkeep(&scratch).await.with_migrations(WITH_MARKS);
    let steps = upkeep.plan(Purpose::Setup).await.unwrap();
    let [step] = steps.as_slice() else { panic!("one migration: {steps:?}") };
    let update = format!("update schema of the repository to version {NEXT}, from version {TODAY}");
    assert_eq!(step.id, update);
    upkeep_refused(&scratch, &upkeep, &[Purpose::Fixup, Purpose::Cleanup]).await;

    upkeep.apply(Purpose::Setup, step, &()).await.unwrap_err();
    let half = recorded(&scratch).await.unwrap();
    assert_eq!(half.get_i32("version").unwrap(), TODAY);
    let running = half.get_document("running").unwrap();
    assert_eq!(running.get_i32("to").unwrap(), NEXT);
    assert!(running.get_datetime("at").is_ok());
    assert_eq!(marked(&scratch).await, 1);
    // A node of the version before, which may or may not create what is missing.
    let (has, knows) = (format!("has schema version {NEXT}"), format!("knows {TODAY} at most"));
    let words = [has.as_str(), &knows, "update this node"];
    refused(&scratch, careful(&scratch), ErrorKind::Conflict, &words).await;
    refused(&scratch, scratch.config(), ErrorKind::Conflict, &words).await;
    upkeep_refused(&scratch, &upkeep, &[Purpose::Fixup, Purpose::Cleanup]).await;
    let older = repository_upkeep(&scratch).await;
    upkeep_refused(&scratch, &older, &Purpose::ALL).await;

    orders.delete_one(doc! { "_id": "die" }).await.unwrap();
    let [again] = &applied(&upkeep, Purpose::Setup).await[..] else { panic!("one migration") };
    assert_eq!(again.id, step.id);
    assert!(again.reason.contains("begun and not finished"), "{}", again.reason);
    assert_eq!(marked(&scratch).await, 5);
    assert_eq!(recorded(&scratch).await, Some(doc! { "_id": "repository", "version": NEXT }));
    refused(&scratch, scratch.config(), ErrorKind::Conflict, &words).await;
}

async fn newer(uri: String) {
    let scratch = Scratch::new(&uri);
    set_up(&scratch).await;
    record(&scratch, doc! { "_id": "repository", "version": 7 }).await;
    let knows = format!("knows {TODAY} at most");
    let words = ["has schema version 7", &knows, "update this node"];
    refused(&scratch, careful(&scratch), ErrorKind::Conflict, &words).await;
    refused(&scratch, scratch.config(), ErrorKind::Conflict, &words).await;
    let upkeep = repository_upkeep(&scratch).await;
    upkeep_refused(&scratch, &upkeep, &Purpose::ALL).await;
}

async fn several_migrate_at_once(uri: String) {
    let scratch = Scratch::new(&uri);
    lanes(&scratch).await;
    let upkeep = Arc::new(repository_upkeep(&scratch).await.with_migrations(WITH_MARKS));
    let steps = upkeep.plan(Purpose::Setup).await.unwrap();
    let nodes = (0..6).map(|_| {
        let (upkeep, steps) = (Arc::clone(&upkeep), steps.clone());
        tokio::spawn(async move {
            for step in &steps {
                upkeep.apply(Purpose::Setup, step, &()).await?;
            }
            Ok::<(), flare_core::Error>(())
        })
    });
    for node in join_all(nodes).await {
        node.unwrap().unwrap();
    }
    assert_eq!(recorded(&scratch).await, Some(doc! { "_id": "repository", "version": NEXT }));
    assert_eq!(marked(&scratch).await, 5);
}

async fn migrations_run_in_their_order(uri: String) {
    let scratch = Scratch::new(&uri);
    let upkeep = repository_upkeep(&scratch).await.with_migrations(WITH_MARKS);
    let steps = upkeep.plan(Purpose::Setup).await.unwrap();
    let last = steps.last().unwrap();
    assert!(last.id.contains(&format!("to version {NEXT}")), "{}", last.id);
    let outcome = upkeep.apply(Purpose::Setup, last, &()).await.unwrap();
    assert_eq!(outcome, StepOutcome::NotNeeded, "the first has not run");
    assert_eq!(recorded(&scratch).await, None);
}

fn index(name: &str, keys: Document) -> IndexModel {
    let mut index = IndexModel::builder().keys(keys).build();
    index.options.get_or_insert_default().name = Some(name.to_owned());
    index
}

async fn an_index_that_differs_is_built_again(uri: String) {
    let scratch = Scratch::new(&uri);
    let jobs = scratch.database().await.collection::<Document>("flare_jobs");
    jobs.create_index(index("due", doc! { "due": -1 })).await.unwrap();
    jobs.create_index(index("host", doc! { "createdAt": 1 })).await.unwrap();
    let error = MongoRepository::connect(scratch.config()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("run `flare setup repository`"), "{error}");

    let upkeep = repository_upkeep(&scratch).await;
    let steps = applied(&upkeep, Purpose::Setup).await;
    let updates: Vec<_> = steps.iter().filter(|step| step.kind == StepKind::Update).collect();
    let [again, .., version] = updates[..] else { panic!("an index and migrations: {updates:?}") };
    assert_eq!(again.id, r#"update index due of flare_jobs, from { "key": { "due": -1 } }"#);
    assert!(again.reason.contains("takes its time"), "{}", again.reason);
    assert!(version.id.contains(&format!("version {TODAY}")), "{}", version.id);
    let mut names = jobs.list_index_names().await.unwrap();
    names.sort();
    assert_eq!(names, ["_id_", "due", "host", "subject"], "the host's own stays");
    MongoRepository::connect(careful(&scratch)).await.unwrap();
}

async fn an_index_may_have_another_name(uri: String) {
    let scratch = Scratch::new(&uri);
    let jobs = scratch.database().await.collection::<Document>("flare_jobs");
    jobs.create_index(index("host", doc! { "due": 1, "_id": 1 })).await.unwrap();
    set_up(&scratch).await;
    let upkeep = repository_upkeep(&scratch).await;
    for purpose in Purpose::ALL {
        assert_eq!(upkeep.plan(purpose).await.unwrap(), [], "{purpose}");
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("migrations")
        .test("several_connect_at_once", several_connect_at_once)
        .test("not_set_up", not_set_up)
        .test("died_in_the_first_migration", died_in_the_first_migration)
        .test("died_half_way", died_half_way)
        .test("newer", newer)
        .test("several_migrate_at_once", several_migrate_at_once)
        .test("migrations_run_in_their_order", migrations_run_in_their_order)
        .test("an_index_that_differs_is_built_again", an_index_that_differs_is_built_again)
        .test("an_index_may_have_another_name", an_index_may_have_another_name)
}
