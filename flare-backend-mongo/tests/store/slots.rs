//! Whose lanes are in some slots is read from an index: the server looks at those alone, among many
//! thousands. Records of nodes that know no hashes yet are found as well.

use std::collections::BTreeSet;

use flare_backend_mongo::{Commands, MongoRepository};
use flare_core::model::{
    IdSource, ResourceId, SlotHash, Subscription, SubscriptionId, SubscriptionSpec, Timestamp,
};
use flare_core::port::{SlotQuery, SubscriptionStore};
use flare_testkit::Trials;
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};

use crate::explain::{explainable, number, stages};
use crate::support::Scratch;
use crate::support::spoil::uuid;

const SLOTS: u32 = 1_024;
const MANY: usize = 20_000;
const NOW: Timestamp = Timestamp::from_unix_seconds(1_700_000_000);

fn subscription(ids: &IdSource, index: usize) -> Subscription {
    let spec = SubscriptionSpec::post(format!("http://client.example/{index}")).build().unwrap();
    let resource = ResourceId::from_bytes([1; 16]);
    Subscription::new(ids.next(NOW).into(), resource, spec, NOW)
}

async fn found(store: &MongoRepository, query: &SlotQuery) -> BTreeSet<SubscriptionId> {
    let found = store.subscriptions_in(query.clone(), None).map_ok(|it| it.id);
    let found: Vec<SubscriptionId> = found.try_collect().await.unwrap();
    let ids: BTreeSet<SubscriptionId> = found.iter().copied().collect();
    assert_eq!(ids.len(), found.len(), "each is given once");
    ids
}

/// Many that are hashed everywhere: copies of one that went through the port.
async fn fill(store: &MongoRepository, scratch: &Scratch, ids: &IdSource) -> Vec<SubscriptionId> {
    let first = subscription(ids, 0);
    store.insert_subscription(first.clone(), 1_000).await.unwrap();
    let records = scratch.database().await.collection::<Document>("flare_subscriptions");
    let model = records.find_one(doc! {}).await.unwrap().unwrap();
    let copies: Vec<SubscriptionId> = (1..MANY).map(|_| ids.next(NOW).into()).collect();
    let copy = |id: &SubscriptionId| {
        let mut copy = model.clone();
        copy.insert("_id", uuid(id.as_bytes()));
        copy.insert("urls", vec![id.to_string()]);
        copy.insert("slotHash", i64::from(SlotHash::of(*id).number()));
        copy
    };
    for copies in copies.chunks(5_000) {
        records.insert_many(copies.iter().map(copy)).await.unwrap();
    }
    std::iter::once(first.id).chain(copies).collect()
}

async fn only_those_of_the_slots_are_looked_at(uri: String) {
    let scratch = Scratch::new(&uri);
    let commands = Commands::recording();
    let store = MongoRepository::connect(scratch.config().commands(&commands)).await.unwrap();
    let ids = IdSource::seeded(5);
    let all = fill(&store, &scratch, &ids).await;
    let database = scratch.database().await;
    // One, a few here and there, half of them, and reserved ones beside them.
    let choices: [Vec<u32>; 4] = [
        vec![7],
        (0..SLOTS).step_by(64).collect(),
        (0..SLOTS).filter(|slot| slot.count_ones() % 2 == 0).collect(),
        vec![3, SLOTS + 1, SLOTS + 2],
    ];
    for slots in choices {
        let query = SlotQuery::new(slots.iter().copied(), SLOTS);
        commands.take_recorded();
        let found = found(&store, &query).await;
        let expected = all.iter().filter(|id| slots.contains(&SlotHash::of(**id).slot(SLOTS)));
        assert_eq!(found, expected.copied().collect(), "{} slots", slots.len());
        let (mut keys, mut records) = (0, 0);
        for (name, bytes) in commands.take_recorded() {
            let command = Document::from_reader(bytes.as_slice()).unwrap();
            for question in explainable(&name, command) {
                let explain = doc! { "explain": question, "verbosity": "executionStats" };
                let plan = database.run_command(explain).await.unwrap();
                let stages = stages(&plan);
                assert!(!stages.contains("COLLSCAN") && !stages.contains("SORT"), "{plan}");
                keys += number(&plan, "totalKeysExamined").unwrap();
                records += number(&plan, "totalDocsExamined").unwrap();
            }
        }
        let found = i64::try_from(found.len()).unwrap();
        assert_eq!(records, found, "{} slots: no other record is read", slots.len());
        // A look at where each range begins and ends, and where each slot may be named.
        let looks = 4 * i64::try_from(slots.len()).unwrap() + 8;
        assert!(keys <= found + looks, "{keys} keys for {found} in {} slots", slots.len());
    }
}

async fn take_hashes_away(scratch: &Scratch, filter: Document) -> u64 {
    let records = scratch.database().await.collection::<Document>("flare_subscriptions");
    let unset = doc! { "$unset": { "slotHash": "" } };
    records.update_many(filter, unset).await.unwrap().modified_count
}

async fn those_of_before_get_their_hashes(uri: String) {
    let scratch = Scratch::new(&uri);
    let store = MongoRepository::connect(scratch.config()).await.unwrap();
    let ids = IdSource::seeded(6);
    let mut all = BTreeSet::new();
    for index in 0..50 {
        let subscription = subscription(&ids, index);
        all.insert(subscription.id);
        store.insert_subscription(subscription, 1_000).await.unwrap();
    }
    let everywhere = SlotQuery::new(0..SLOTS, SLOTS);
    let records = scratch.database().await.collection::<Document>("flare_subscriptions");
    // What has no id of ours is in nobody's way.
    records.insert_one(doc! { "_id": "stray", "told": false }).await.unwrap();

    // A database of the version before.
    assert_eq!(take_hashes_away(&scratch, doc! { "told": true }).await, 50);
    let schema = scratch.database().await.collection::<Document>("flare_schema");
    let before = doc! { "$set": { "version": 3 } };
    schema.update_one(doc! { "_id": "repository" }, before).await.unwrap();
    drop(store);
    let store = MongoRepository::connect(scratch.config()).await.unwrap();
    let without = doc! { "slotHash": null, "told": true };
    assert_eq!(records.count_documents(without.clone()).await.unwrap(), 0, "the migration ran");
    assert_eq!(found(&store, &everywhere).await, all);

    // Those that a node of the version before creates while this one runs.
    let odd = doc! { "told": true, "slotHash": { "$mod": [2, 1] } };
    assert!(take_hashes_away(&scratch, odd).await > 0);
    for slot in 0..4 {
        let query = SlotQuery::new([slot], 4);
        let expected = all.iter().filter(|id| SlotHash::of(**id).slot(4) == slot);
        assert_eq!(found(&store, &query).await, expected.copied().collect());
    }
    assert_eq!(records.count_documents(without).await.unwrap(), 0);
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("slots")
        .test("only_those_of_the_slots_are_looked_at", only_those_of_the_slots_are_looked_at)
        .test("those_of_before_get_their_hashes", those_of_before_get_their_hashes)
}
