//! Consumers and their rejects on the real server: what is asked for is found in an index, what cannot be read stops
//! no others, and what a removal that died half-way left is forgotten by the next.

use std::time::Duration;

use bytes::Bytes;
use flare_backend_mongo::{Commands, MongoRepository};
use flare_core::model::consumer::{RejectReason, Rejection};
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, ConsumerStatus, Generation, IdSource, RecordName,
    Reject, RejectId, Timestamp,
};
use flare_core::port::{ConsumerStore, Page, Replaced, RowStore};
use flare_testkit::Trials;
use flare_testkit::unreadable::Spoiling;
use futures::{StreamExt, TryStreamExt};
use mongodb::bson::{Document, doc};

use crate::explain::{explainable, number, stages};
use crate::support::Scratch;
use crate::support::spoil::{self, uuid};

const NOW: Timestamp = Timestamp::from_unix_seconds(1_700_000_000);
const ALL: Page = Page::new(100, 0);
/// More rejects than are stored here.
const ENOUGH: usize = 1_000_000;
/// Rejects among which some are looked for.
const MANY: usize = 20_000;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("consumers")
        .test("every_question_is_answered_by_an_index", explained)
        .test("what_cannot_be_read_stops_no_others", unreadable)
        .test("a_damaged_time_is_in_the_way_of_no_other", damaged_time)
        .test("fields_of_a_newer_version_stay", unknown_field)
        .test("a_removal_that_died_half_way_is_gone_on_with", half_removed)
}

struct Filled {
    scratch: Scratch,
    store: MongoRepository,
    consumers: Vec<Consumer>,
    rejects: Vec<Reject>,
}

/// Three consumers, the first of them with three rejects.
async fn filled(uri: &str, commands: &Commands) -> Filled {
    let scratch = Scratch::new(uri);
    let store = MongoRepository::connect(scratch.config().commands(commands)).await.unwrap();
    let ids = IdSource::seeded(1);
    let mut consumers = Vec::new();
    for number in 0..3 {
        let text = format!(
            r#"{{"source":{{"kind":"sqs","settings":{{"queue":"q{number}"}}}},
                "document":{{"url":"http://a.example/{{/id}}"}},"createdAt":1,"updatedAt":2}}"#
        );
        let (id, resource) = (ids.next(NOW).into(), ids.next(NOW).into());
        let new = Consumer::from_stored(id, resource, Generation::new(1), &text).unwrap();
        consumers.push(store.insert_consumer(new).await.unwrap());
    }
    let rejects: Vec<Reject> = (0..3).map(|place| reject(consumers[0].id, place)).collect();
    store.insert_rejects(rejects.clone(), ENOUGH).await.unwrap();
    Filled { scratch, store, consumers, rejects }
}

fn reject(consumer: ConsumerId, place: u64) -> Reject {
    let rejection = Rejection::new(RejectReason::NotJson, "", "is not JSON");
    let (body, at) = (Bytes::from_static(b"{"), NOW + Duration::from_nanos(place));
    Reject::new(consumer, &format!("message {place}"), &body, rejection, at)
}

impl Filled {
    async fn records(&self, name: &str) -> mongodb::Collection<Document> {
        self.scratch.database().await.collection(name)
    }

    async fn spoil(&self, record: RecordName, how: Spoiling) {
        spoil::spoil(&self.scratch.database().await, &record, how).await;
    }

    /// Which rejects the first consumer has, and how many there are with those that cannot be read.
    async fn kept(&self) -> (Vec<RejectId>, u64) {
        let listed = self.store.list_rejects(self.consumers[0].id, ALL).await.unwrap();
        (listed.items.iter().map(|reject| reject.id).collect(), listed.total)
    }
}

async fn explained(uri: String) {
    let commands = Commands::recording();
    let filled = filled(&uri, &commands).await;
    let Filled { store, consumers, rejects, .. } = &filled;
    copy(&filled).await;
    let (first, epoch) = (consumers[0].id, store.next_epoch().await.unwrap().epoch);
    let ids: Vec<RejectId> = rejects.iter().map(|reject| reject.id).collect();
    commands.take_recorded();

    store.insert_consumer(consumers[1].clone()).await.unwrap();
    store.list_consumers(ALL).await.unwrap();
    store.scan_consumers(Some(first)).try_collect::<Vec<_>>().await.unwrap();
    store.replace_consumer(Generation::new(1), consumers[0].clone()).await.unwrap();
    store.replace_consumer(Generation::new(1), consumers[0].clone()).await.unwrap();
    store.claim_consumer_state(epoch, first).await.unwrap();
    store.store_consumer_state(epoch, first, ConsumerState::default()).await.unwrap();
    store.consumer_states(vec![first, consumers[1].id]).await.unwrap();
    store.insert_rejects(rejects.clone(), MANY + 1).await.unwrap();
    store.list_rejects(first, ALL).await.unwrap();
    store.rejects(first, ids.clone()).await.unwrap();
    store.expire_rejects(first, NOW + Duration::from_nanos(1), 10).await.unwrap();
    store.remove_rejects(first, ids).await.unwrap();
    // More than may stay: the oldest of them go.
    store.insert_rejects(vec![reject(first, 9)], MANY - 1).await.unwrap();
    store.remove_consumer(consumers[2].id, None).await.unwrap();

    let database = filled.scratch.database().await;
    let mut kinds = Vec::new();
    for (name, bytes) in commands.take_recorded() {
        let command = Document::from_reader(bytes.as_slice()).unwrap();
        for question in explainable(&name, command) {
            let explain = doc! { "explain": question.clone(), "verbosity": "executionStats" };
            let plan = database.run_command(explain).await.unwrap();
            assert!(!stages(&plan).contains("COLLSCAN"), "scanned: {question}\n{plan}");
            assert!(!stages(&plan).contains("SORT"), "sorted by itself: {question}\n{plan}");
            // Counts, and what looks for ids and times alone, need no record.
            let text = question.to_string();
            let of_index = name == "aggregate"
                || (name == "find"
                    && text.contains("flare_rejects")
                    && question.contains_key("projection"));
            if of_index {
                let examined = number(&plan, "totalDocsExamined");
                assert_eq!(examined, Some(0), "outside of its index: {question}\n{plan}");
            }
            kinds.push(name.clone());
        }
    }
    assert!(kinds.len() >= 15, "the questions were recorded: {kinds:?}");
}

/// Gives the first consumer many rejects more, all of them older.
async fn copy(filled: &Filled) {
    let records = filled.records("flare_rejects").await;
    let model = records.find_one(doc! {}).await.unwrap().unwrap();
    let copies = (3..MANY).map(|place| {
        let mut copy = model.clone();
        let id = uuid(&(place as u128).to_be_bytes());
        copy.get_document_mut("_id").unwrap().insert("id", id);
        copy.insert("rejectedAt", place as i64);
        copy
    });
    let copies: Vec<Document> = copies.collect();
    for copies in copies.chunks(5_000) {
        records.insert_many(copies).await.unwrap();
    }
}

async fn unreadable(uri: String) {
    for how in [Spoiling::Newer, Spoiling::Damaged] {
        let filled = filled(&uri, &Commands::new()).await;
        let Filled { store, consumers, rejects, .. } = &filled;
        let (id, name) = (consumers[0].id, RecordName::Consumer(consumers[0].id));
        filled.spoil(name.clone(), how).await;
        let is_it = |error: &flare_core::Error| {
            assert_eq!(error.unreadable().map(|it| &it.record), Some(&name), "{error}");
        };
        is_it(&store.consumer(id).await.unwrap_err());
        is_it(&store.insert_consumer(consumers[0].clone()).await.unwrap_err());
        let replaced = store.replace_consumer(Generation::new(1), consumers[0].clone()).await;
        is_it(&replaced.unwrap_err());
        let listed = store.list_consumers(ALL).await.unwrap();
        assert_eq!((listed.items.as_slice(), listed.total), (&consumers[1..], 3));
        assert_eq!(listed.unreadable.len(), 1);
        let scanned: Vec<_> = store.scan_consumers(None).collect().await;
        is_it(scanned[0].as_ref().unwrap_err());
        assert_eq!(scanned.into_iter().flatten().collect::<Vec<_>>(), consumers[1..]);

        let one = RecordName::Reject(rejects[1].id);
        filled.spoil(one.clone(), how).await;
        assert_eq!(filled.kept().await, (vec![rejects[0].id, rejects[2].id], 3));
        let asked = store.rejects(id, vec![rejects[1].id]).await.unwrap_err();
        assert_eq!(asked.unreadable().map(|it| &it.record), Some(&one));
        // It is there, so what becomes no document is still kept; and it goes by its time, or with the consumer.
        store.insert_rejects(vec![rejects[2].clone()], 2).await.unwrap();
        assert_eq!(filled.kept().await, (vec![rejects[2].id], 2));
        store.insert_rejects(vec![rejects[1].clone()], 2).await.unwrap();
        assert_eq!(filled.kept().await, (vec![rejects[1].id, rejects[2].id], 2), "in its place");
        filled.spoil(one, how).await;
        store.remove_consumer(id, None).await.unwrap();
        assert_eq!(filled.kept().await, (Vec::new(), 0));
        assert_eq!(store.list_consumers(ALL).await.unwrap().total, 2);
    }
}

async fn damaged_time(uri: String) {
    let filled = filled(&uri, &Commands::new()).await;
    let Filled { store, consumers, rejects, .. } = &filled;
    let (first, epoch) = (consumers[0].id, store.next_epoch().await.unwrap().epoch);
    let records = filled.records("flare_rejects").await;
    let this = doc! { "_id.id": uuid(rejects[0].id.as_bytes()) };
    records.update_one(this, doc! { "$set": { "rejectedAt": "{" } }).await.unwrap();
    store.insert_rejects(vec![reject(first, 3), reject(first, 4)], 2).await.unwrap();
    assert_eq!(filled.kept().await, (vec![reject(first, 3).id, reject(first, 4).id], 3));
    assert_eq!(store.expire_rejects(first, Timestamp::MAX, 10).await.unwrap(), 2);
    store.remove_rejects(first, vec![rejects[0].id]).await.unwrap();
    assert_eq!(filled.kept().await, (Vec::new(), 0));

    // The same of states: each is one consumer's, and an epoch that is no number fences no owner off.
    let records = filled.records("flare_consumers").await;
    let state = ConsumerState::default();
    for (consumer, set) in consumers.iter().zip([doc! { "state": "{" }, doc! { "epoch": "{" }]) {
        store.store_consumer_state(epoch, consumer.id, state.clone()).await.unwrap();
        let this = doc! { "_id": uuid(consumer.id.as_bytes()) };
        records.update_one(this, doc! { "$set": set }).await.unwrap();
    }
    store.store_consumer_state(epoch, consumers[2].id, state.clone()).await.unwrap();
    let all = consumers.iter().map(|consumer| consumer.id).collect::<Vec<_>>();
    for (id, other) in [(all[0], all[2]), (all[1], all[2])] {
        let found = store.consumer_states(vec![other]).await.unwrap();
        assert_eq!(found, [(other, epoch, state.clone())]);
        let error = store.consumer_states(vec![id, other]).await.unwrap_err();
        assert_eq!(error.unreadable().map(|it| &it.record), Some(&RecordName::Consumer(id)));
    }
    let error = store.claim_consumer_state(epoch, first).await.unwrap_err();
    assert_eq!(error.unreadable().map(|it| &it.record), Some(&RecordName::Consumer(first)));
    assert_eq!(store.claim_consumer_state(epoch, all[1]).await.unwrap(), Some(state.clone()));
    for id in &all {
        let stored = store.store_consumer_state(epoch, *id, state.clone()).await.unwrap();
        assert_eq!(stored, Applied::Done);
    }
    assert_eq!(store.consumer_states(all).await.unwrap().len(), 3);
}

async fn unknown_field(uri: String) {
    let filled = filled(&uri, &Commands::new()).await;
    let Filled { store, consumers, .. } = &filled;
    let name = RecordName::Consumer(consumers[0].id);
    filled.spoil(name.clone(), Spoiling::UnknownField).await;
    let mut paused = consumers[0].clone();
    paused.status = ConsumerStatus::Paused;
    // By a node that has read it, and by one that has not.
    let read = store.consumer(paused.id).await.unwrap().unwrap();
    for (generation, new) in [(1, read), (2, paused)] {
        let new = store.replace_consumer(Generation::new(generation), new).await.unwrap();
        let Replaced::Done(new) = new else { panic!("{new:?}") };
        assert_eq!(store.consumer(new.id).await.unwrap(), Some(new));
        let database = filled.scratch.database().await;
        assert!(spoil::has_unknown_field(&database, &name).await, "at {generation}");
    }
}

async fn half_removed(uri: String) {
    let filled = filled(&uri, &Commands::new()).await;
    let Filled { store, consumers, rejects, .. } = &filled;
    let consumer = doc! { "_id": uuid(consumers[0].id.as_bytes()) };
    for again in [false, true] {
        filled.records("flare_consumers").await.delete_one(consumer.clone()).await.unwrap();
        assert_eq!(filled.kept().await.1, 3);
        // Either who removes it once more, or who still keeps rejects of it.
        if again {
            store.remove_consumer(consumers[0].id, None).await.unwrap();
        } else {
            store.insert_rejects(vec![reject(consumers[0].id, 3)], ENOUGH).await.unwrap();
        }
        assert_eq!(filled.kept().await.1, 0);
        store.insert_consumer(consumers[0].clone()).await.unwrap();
        store.insert_rejects(rejects.clone(), ENOUGH).await.unwrap();
    }
}
