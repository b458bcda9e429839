//! The upkeep on MongoDB keeps every clause of the contract, for every part: on a database that is
//! not set up, and on one that is and has suffered.

use std::sync::Arc;

use crate::support::Scratch;
use crate::support::ids::{Ids, LONG_AGO, bson, nanos_ago};
use async_trait::async_trait;
use flare_backend_mongo::MongoUpkeep;
use flare_core::port::{Part, Purpose, Upkeep};
use flare_testkit::{Fixture, Subject, Trials, upkeep};
use mongodb::bson::{DateTime, Document, doc};
use mongodb::{Database, IndexModel};

struct OnMongo {
    uri: String,
    part: Part,
    set_up: bool,
}

#[async_trait]
impl Fixture for OnMongo {
    type Port = dyn Upkeep;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Upkeep>, Scratch) {
        let scratch = Scratch::new(&self.uri);
        let upkeep = MongoUpkeep::connect(scratch.config(), self.part).await.unwrap();
        let database = scratch.database().await;
        if self.set_up {
            for step in upkeep.plan(Purpose::Setup).await.unwrap() {
                upkeep.apply(Purpose::Setup, &step, &()).await.unwrap();
            }
        }
        leave(&database).await;
        if self.set_up && self.part == Part::Repository {
            damage(&database).await;
        }
        (Arc::new(upkeep), scratch)
    }
}

/// Leaves something to clean up.
async fn leave(database: &Database) {
    let ids = Ids::seeded(1);
    let (gone, other) = (bson(ids.old()), bson(ids.old()));
    let insert = async |name: &str, records: Vec<Document>| {
        database.collection::<Document>(name).insert_many(records).await.unwrap();
    };
    let row =
        |number: usize| doc! { "_id": { "subscription": &gone, "url": format!("u{number}") } };
    insert("flare_rows", (0..2_100).map(row).collect()).await;
    insert("flare_lanes", vec![doc! { "_id": { "subscription": &gone, "shard": 0_i64 } }]).await;
    insert("flare_documents", vec![doc! { "_id": { "resource": &other, "url": "u" } }]).await;
    let message = doc! { "queue": "slot-1", "at": nanos_ago(LONG_AGO) };
    insert("flare_messages", vec![message]).await;
    let counter = doc! { "_id": { "resource": &gone, "number": 0_i64 }, "seats": 3_i64 };
    insert("flare_partitions", vec![counter]).await;
    let reject = doc! { "_id": { "consumer": &other, "id": &gone }, "rejectedAt": 1_i64 };
    insert("flare_rejects", vec![reject]).await;
}

/// Breaks what a fixup puts right.
async fn damage(database: &Database) {
    let collection = |name: &str| database.collection::<Document>(name);
    collection("flare_counters").drop().await.unwrap();
    collection("flare_rows").drop_index("dead").await.unwrap();
    collection("flare_documents").drop_index("tombstones").await.unwrap();
    let mut other = IndexModel::builder().keys(doc! { "updatedAt": 1 }).build();
    other.options.get_or_insert_default().name = Some("tombstones".to_owned());
    collection("flare_documents").create_index(other).await.unwrap();
    let ids = Ids::seeded(2);
    let resource = bson(ids.old());
    let seat = |number: i64| doc! { "resource": &resource, "number": number };
    let long_ago = DateTime::from_millis(nanos_ago(LONG_AGO) / 1_000_000);
    let count = doc! { "_id": seat(0), "seats": 4_i64, "takenAt": long_ago };
    collection("flare_partitions").insert_one(count).await.unwrap();
    for (partition, id) in [(0_i64, ids.old()), (0, ids.old()), (1, ids.old())] {
        let subscription =
            doc! { "_id": bson(id), "resource": &resource, "partition": partition, "told": false };
        collection("flare_subscriptions").insert_one(subscription).await.unwrap();
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    let mut trials = all.of("upkeep");
    for part in Part::ALL {
        for set_up in [false, true] {
            for clause in upkeep::CLAUSES {
                let state = if set_up { "set_up" } else { "new" };
                let name = format!("{part}_{state}_{}", clause.name).leak();
                trials = trials.test(name, move |uri| async move {
                    let (subject, _guard) = Subject::open(OnMongo { uri, part, set_up }).await;
                    (clause.run)(subject).await;
                });
            }
        }
    }
    trials
}
