//! Every hot question of the repository, explained by the server at 100,000 documents and rows: no
//! collection is scanned, and what is counted is counted in an index.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "it is a test, and says what it found"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::Scratch;
use flare_backend_mongo::{Commands, MongoRepository};
use flare_core::model::{
    Action, AuditSubject, BucketRange, ChangeRule, ClaimId, Content, DeadLetter, DeathReason,
    DocumentKey, DocumentUrl, Endpoint, Epoch, Generation, IdSource, JobKind, Present, Resource,
    ResourceId, Revision, Round, RowEffect, RowKey, Spread, Subscription, SubscriptionId,
    SubscriptionSpec, Timestamp, Version,
};
use flare_core::port::{
    AuditStore, ClaimRows, DocumentStore, DocumentWrite, JobStore, Page, PendingQuery, Replay,
    ResourceStore, RowStore, RowUpdate, SlotQuery, SubscriptionStore,
};
use flare_testkit::Trials;
use futures::{StreamExt, TryStreamExt};
use mongodb::bson::{Bson, Document, doc};

const COUNT: usize = 100_000;
/// Documents and rows that go through the port; the rest are copies of the last ones.
const WRITTEN: usize = 1_000;
/// Rows that stay pending, documents that stay undispatched.
const LEFT: usize = 500;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("explain").test("no_hot_question_scans_a_collection", explained)
}

async fn explained(uri: String) {
    let scratch = Scratch::new(&uri);
    let commands = Commands::recording();
    let config = scratch.config().commands(&commands);
    let store = MongoRepository::connect(config).await.unwrap();
    let filled = fill(&store, &scratch).await;
    commands.take_recorded();
    ask_everything(&store, &filled).await;
    let recorded = commands.take_recorded();
    let database = scratch.database().await;
    let mut seen = BTreeSet::new();
    let mut scans = Vec::new();
    for (name, bytes) in recorded {
        let command = Document::from_reader(bytes.as_slice()).unwrap();
        for question in explainable(&name, command) {
            let plan = database
                .run_command(doc! { "explain": question.clone(), "verbosity": "executionStats" })
                .await
                .unwrap_or_else(|error| panic!("{name} cannot be explained: {error}: {question}"));
            let stages = stages(&plan);
            seen.insert(format!(
                "{name}: {}",
                stages.iter().cloned().collect::<Vec<_>>().join(" ")
            ));
            if stages.contains("COLLSCAN") {
                scans.push(question.clone());
            }
            if is_count(&question) {
                let examined = number(&plan, "totalDocsExamined");
                assert_eq!(examined, Some(0), "counted outside of its index: {question}\n{plan}");
            }
        }
    }
    println!("{seen:#?}");
    assert!(seen.len() >= 10, "the questions were recorded: {seen:?}");
    assert!(scans.is_empty(), "a collection was scanned: {scans:#?}");
}

struct Filled {
    resource: ResourceId,
    subscription: SubscriptionId,
    keys: Vec<DocumentKey>,
    ids: IdSource,
}

async fn fill(store: &MongoRepository, scratch: &Scratch) -> Filled {
    let ids = IdSource::seeded(1);
    let now = Timestamp::from_unix_seconds(1_700_000_000);
    let endpoint = Endpoint::parse("http://api.example/items/{id}").unwrap();
    let rule = ChangeRule::new("rev", None).unwrap();
    let resource = Resource::new(ids.next(now).into(), endpoint, rule, now);
    store.insert_resource(resource.clone()).await.unwrap();
    let spec = SubscriptionSpec::post("http://client.example/").build().unwrap();
    let subscription = Subscription::new(ids.next(now).into(), resource.id, spec, now);
    store.insert_subscription(subscription.clone(), 1_000).await.unwrap();
    let url =
        |number: usize| DocumentUrl::parse(&format!("http://api.example/items/{number}")).unwrap();
    let keys: Vec<DocumentKey> =
        (0..COUNT).map(|number| DocumentKey::new(resource.id, url(number))).collect();
    let version = Version::live(Revision::new(1));
    let epoch = store.next_epoch().await.unwrap().epoch;
    {
        let batch = &keys[..WRITTEN];
        let content = || Content::from_stored("{\"rev\":1}".into());
        let put = |key: &DocumentKey| DocumentWrite::put(key.clone(), Revision::new(1), content());
        let written = store.write_documents(batch.iter().map(put).collect()).await;
        written.into_iter().for_each(|written| assert!(written.is_ok()));
        let spread = |key: &DocumentKey| {
            Spread::new(subscription.id, Generation::new(1), key.clone(), version)
        };
        store.spread_rows(batch.iter().map(spread).collect()).await.unwrap();
    }
    {
        let batch = &keys[LEFT..WRITTEN];
        let marked = batch.iter().map(|key| (key.clone(), version)).collect();
        store.mark_dispatched(marked).await.into_iter().for_each(|it| it.unwrap());
        let settled = RowEffect::Settle { version, present: Present::Yes, not_before: None };
        let settle = |key: &DocumentKey| RowUpdate {
            key: RowKey::new(subscription.id, key.url.clone()),
            round: Round::ZERO,
            effect: settled.clone(),
        };
        let applied = store.apply_rows(epoch, batch.iter().map(settle).collect()).await;
        applied.into_iter().for_each(|it| assert!(it.is_ok()));
    }
    copy(scratch, &keys[WRITTEN..], "flare_documents").await;
    copy(scratch, &keys[WRITTEN..], "flare_rows").await;
    Filled { resource: resource.id, subscription: subscription.id, keys, ids }
}

/// Fills a collection with copies of one of its records: settled, dispatched, unremarkable.
async fn copy(scratch: &Scratch, keys: &[DocumentKey], collection: &str) {
    let records = scratch.database().await.collection::<Document>(collection);
    let last = format!("http://api.example/items/{}", WRITTEN - 1);
    let model = records.find_one(doc! { "_id.url": last }).await.unwrap().unwrap();
    for keys in keys.chunks(10_000) {
        let copies = keys.iter().map(|key| {
            let mut copy = model.clone();
            copy.get_document_mut("_id").unwrap().insert("url", key.url.as_str());
            copy
        });
        records.insert_many(copies).await.unwrap();
    }
}

async fn ask_everything(store: &MongoRepository, filled: &Filled) {
    let Filled { resource, subscription, keys, ids } = filled;
    let (now, long) = (Timestamp::MAX, Duration::from_secs(60));
    let some = || keys[..10].to_vec();
    let row = |key: &DocumentKey| RowKey::new(*subscription, key.url.clone());
    let version = |revision| Version::live(Revision::new(revision));
    let put = |key: &DocumentKey, revision| {
        let content = Content::from_stored("{}".into());
        DocumentWrite::put(key.clone(), Revision::new(revision), content)
    };

    let urls = some().into_iter().map(|key| key.url).collect();
    store.match_resources(urls).await.unwrap();
    store.resource(*resource).await.unwrap();
    store.list_resources(Page::new(30, 0)).await.unwrap();
    store.list_jobs(Page::new(30, 0)).await.unwrap();
    store.list_audit(None, Page::new(30, 0)).await.unwrap();
    let slot = AuditSubject::slot(3);
    store.list_audit(Some(&slot), Page::new(30, 0)).await.unwrap();
    store.subscription(*subscription).await.unwrap();
    store.list_subscriptions(*resource, Page::new(30, 0)).await.unwrap();
    store.partitions(*resource).await.unwrap();
    let [partition] = store.partitions(*resource).await.unwrap()[..] else { panic!("one") };
    store.members(*resource, partition).await.unwrap();
    for slots in [vec![0, 1, 5, 1_030], (0..1_024).collect()] {
        let slots = SlotQuery::new(slots, 1_024);
        store.subscriptions_in(slots.clone(), None).try_collect::<Vec<_>>().await.unwrap();
        let after = Some(*subscription);
        store.subscriptions_in(slots, after).try_collect::<Vec<_>>().await.unwrap();
    }

    store.write_documents(vec![put(&keys[0], 2)]).await.remove(0).unwrap();
    store.write_documents(some().iter().map(|key| put(key, 3)).collect()).await;
    store.write_documents(some().iter().map(|key| put(key, 3)).collect()).await;
    store.write_documents(vec![DocumentWrite::delete(keys[1].clone(), None)]).await;
    store.write_documents(vec![DocumentWrite::leave(keys[2].clone(), version(3))]).await;
    store.documents(some()).await.unwrap();
    store.document_heads(some()).await.unwrap();
    store.mark_dispatched(some().into_iter().map(|key| (key, version(3))).collect()).await;
    store.undispatched(now).try_collect::<Vec<_>>().await.unwrap();
    store.count_undispatched(None).await.unwrap();
    store.count_undispatched(Some(*resource)).await.unwrap();
    store.tombstones(Some(Timestamp::EPOCH), now).try_collect::<Vec<_>>().await.unwrap();
    let after = Some(keys[COUNT - 10].url.clone());
    store.scan_documents(*resource, after).try_next().await.unwrap();
    store.remove_document(&keys[1], version(9)).await.unwrap();

    let epoch = store.next_epoch().await.unwrap().epoch;
    let spread =
        |key: &DocumentKey| Spread::new(*subscription, Generation::new(1), key.clone(), version(3));
    store.spread_rows(some().iter().map(spread).collect()).await.unwrap();
    store.rows(some().iter().map(row).collect()).await.unwrap();
    let query = PendingQuery::new(*subscription, 100).due_by(now);
    store.pending_rows(query.clone()).try_collect::<Vec<_>>().await.unwrap();
    let lane = query.buckets(BucketRange::of_lane(1, 4));
    store.pending_rows(lane).try_collect::<Vec<_>>().await.unwrap();
    assert!(store.count_pending(Some(*subscription)).await.unwrap().count >= LEFT as u64 - 10);
    store.count_pending(None).await.unwrap();
    let each: Vec<_> = store.pending_each().try_collect().await.unwrap();
    assert_eq!(each.len(), 1);
    store.scan_members().try_collect::<Vec<_>>().await.unwrap();
    store.scan_lanes().try_collect::<Vec<_>>().await.unwrap();
    let dead = DeadLetter::new(
        ids.next(Timestamp::EPOCH).into(),
        Action::Create,
        DeathReason::Exhausted,
        Timestamp::EPOCH,
    );
    let dead_id = dead.id;
    let effect = RowEffect::GiveUp { version: version(3), present: Present::No, dead };
    let updates = vec![RowUpdate { key: row(&keys[2]), round: Round::ZERO, effect }];
    store.apply_rows(epoch, updates).await.remove(0).unwrap();
    let ten = some();
    let updates = ten.iter().map(|key| RowUpdate {
        key: row(key),
        round: Round::ZERO,
        effect: RowEffect::Retry {
            version: version(3),
            present: Present::No,
            attempts: 1,
            due: Timestamp::EPOCH,
            first_failure: None,
        },
    });
    store.apply_rows(epoch, updates.collect()).await;
    // An old owner, who is told why nothing happens.
    let updates = vec![RowUpdate {
        key: row(&keys[3]),
        round: Round::ZERO,
        effect: RowEffect::Settle { version: version(3), present: Present::Yes, not_before: None },
    }];
    store.apply_rows(Epoch::ZERO, updates).await.remove(0).unwrap();
    store.dead_letters(*subscription, Page::new(30, 0)).await.unwrap();
    store.find_dead_letters(*subscription, vec![dead_id]).await.unwrap();
    store.drop_dead_letters(Timestamp::EPOCH - long, 10).await.unwrap();
    let replay = Replay { key: row(&keys[2]), version: version(3) };
    store.replay_rows(vec![replay]).await.remove(0).unwrap();
    for max in [10, 1] {
        let claim: ClaimId = ids.next(Timestamp::EPOCH).into();
        let request = ClaimRows { subscription: *subscription, claim, max, holds_for: long };
        store.claim_rows(request).await.unwrap();
    }
    store.demand_rows(*subscription, 10).await.unwrap();
    let asked = PendingQuery::new(*subscription, 100).demanded(true);
    store.pending_rows(asked).try_collect::<Vec<_>>().await.unwrap();
    store.count_documents(*resource).await.unwrap();
    store.expedite_rows(*subscription, 10).await.unwrap();
    store.remove_settled_rows(vec![(row(&keys[COUNT - 1]), version(9))]).await;
    store.rows_of(some(), None, 100).await.unwrap();
    store.rows_of(some(), Some(row(&keys[3])), 100).await.unwrap();
    store.lanes(*subscription).await.unwrap();
    store.due_jobs(now, 10).collect::<Vec<_>>().await;
    store.job(JobKind::Reconcile, "documents").await.unwrap();
    store.remove_rows(*subscription, 10).await.unwrap();
    store.remove_documents(*resource, 10).await.unwrap();
}

/// What the server can explain of a command.
pub(crate) fn explainable(name: &str, mut command: Document) -> Vec<Document> {
    for extra in ["$db", "lsid", "$clusterTime", "writeConcern", "readConcern", "$readPreference"] {
        command.remove(extra);
    }
    match name {
        "find" | "distinct" | "findAndModify" | "update" | "delete" => vec![command],
        "aggregate" => {
            command.insert("cursor", doc! {});
            vec![command]
        }
        // The batch itself cannot be explained, but its updates can.
        "bulkWrite" => {
            let space = command.get_array("nsInfo").unwrap()[0].as_document().unwrap();
            let collection = space.get_str("ns").unwrap().split_once('.').unwrap().1.to_owned();
            let operation = |operation: &Bson| {
                let operation = operation.as_document().unwrap();
                doc! { "update": &collection, "updates": [{
                    "q": operation.get("filter").unwrap(),
                    "u": operation.get("updateMods").unwrap(),
                    "upsert": operation.get_bool("upsert").unwrap_or(false),
                }] }
            };
            // One says it for all: they differ in the id only.
            command.get_array("ops").unwrap().iter().take(1).map(operation).collect()
        }
        // Nothing is looked for.
        "insert" | "hello" | "getMore" | "killCursors" | "createIndexes" => Vec::new(),
        other => panic!("{other} has no place here yet"),
    }
}

fn is_count(question: &Document) -> bool {
    let text = question.to_string();
    question.contains_key("aggregate") && text.contains("$sum")
}

/// The names of all stages anywhere in a plan.
pub(crate) fn stages(plan: &Document) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(&Bson::Document(plan.clone()), &mut |key, value| {
        if key == "stage"
            && let Bson::String(stage) = value
        {
            found.insert(stage.clone());
        }
        // What was considered and not taken is no plan.
        key != "rejectedPlans"
    });
    found
}

pub(crate) fn number(plan: &Document, field: &str) -> Option<i64> {
    let mut found = None;
    walk(&Bson::Document(plan.clone()), &mut |key, value| {
        if key == field {
            found = found.or(value.as_i64().or_else(|| value.as_i32().map(i64::from)));
        }
        true
    });
    found
}

fn walk(value: &Bson, see: &mut impl FnMut(&str, &Bson) -> bool) {
    match value {
        Bson::Document(fields) => {
            for (key, value) in fields {
                if see(key, value) {
                    walk(value, see);
                }
            }
        }
        Bson::Array(items) => items.iter().for_each(|item| walk(item, see)),
        _ => {}
    }
}
