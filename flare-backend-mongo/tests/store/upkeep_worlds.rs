//! In worlds made up at random a cleanup finds exactly what belongs to nobody, and a fixup exactly
//! the counts that are wrong; whatever else there is stays as it is, byte for byte.
//!
//! `FLARE_TEST_SEED` repeats a world: its seed is in the message of a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::support::Scratch;
use crate::support::dump::{Dump, dump, key};
use crate::support::ids::{Ids, LONG_AGO, bson, nanos_ago};
use fastrand::Rng;
use flare_backend_mongo::{MongoRepository, MongoUpkeep};
use flare_core::model::ResourceId;
use flare_core::port::{Part, Purpose, Step, StepOutcome, Upkeep};
use flare_testkit::Trials;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use mongodb::{Database, IndexModel};

const WORLDS: u64 = 30;

/// What was made up, and what is to be found in it.
#[derive(Default)]
struct World {
    records: BTreeMap<&'static str, Vec<Document>>,
    /// Ids of the steps of a cleanup, with their amounts.
    left_over: BTreeMap<String, u64>,
    /// The records of these steps: collection and id.
    orphans: BTreeSet<(&'static str, String)>,
    /// Ids of the steps of a fixup.
    miscounted: BTreeSet<String>,
    /// What the counts are to be afterwards.
    counts: BTreeMap<String, i64>,
}

/// Whether somebody is there, as far as a cleanup is concerned.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Stored,
    /// Not stored, but a job is removing it.
    BeingRemoved,
    /// Not stored, and made just now.
    Young,
    Gone,
}

impl Owner {
    fn any(random: &mut Rng) -> Self {
        match random.u8(..10) {
            0..5 => Self::Stored,
            5 => Self::BeingRemoved,
            6 => Self::Young,
            _ => Self::Gone,
        }
    }
}

impl World {
    fn put(&mut self, collection: &'static str, record: Document) {
        self.records.entry(collection).or_default().push(record);
    }

    /// Puts records of an owner, who is there or not.
    fn put_all(&mut self, collection: &'static str, what: Option<&str>, records: Vec<Document>) {
        if let Some(what) = what.filter(|_| !records.is_empty()) {
            self.left_over.insert(format!("delete {what}"), records.len() as u64);
            let ids = records.iter().map(|record| (collection, key(&record["_id"])));
            self.orphans.extend(ids);
        }
        self.records.entry(collection).or_default().extend(records);
    }

    fn random(random: &mut Rng, ids: &Ids) -> Self {
        let mut world = Self::default();
        let mut resources = Vec::new();
        // Sometimes more than one question can be about.
        let crowded = random.u8(..15) == 0;
        let most = if crowded { 260 } else { 8 };
        for number in 0..random.u64(1..6) {
            let owner = Owner::any(random);
            let id = id(ids, owner, number);
            resources.push((id, owner));
            world.resource(random, ids, id, owner);
        }
        for number in 0..random.u64(..most) {
            let settled = crowded && random.u8(..12) > 0;
            let owner = if settled { Owner::Stored } else { Owner::any(random) };
            let id = id(ids, owner, 1_000 + number);
            world.subscription(random, id, owner, &resources);
        }
        for number in 0..random.u64(..6) {
            let owner = Owner::any(random);
            world.consumer(random, id(ids, owner, 2_000 + number), owner);
        }
        world.seats(random, &resources);
        for number in 0..random.u32(..8) {
            world.queue(random, number);
        }
        world.foreign(random, ids);
        world
    }

    fn job(&mut self, kind: &str, subject: ResourceId) {
        let job = doc! { "_id": ObjectId::new(), "kind": kind, "subject": subject.to_string() };
        self.put("flare_jobs", job);
    }

    fn resource(&mut self, random: &mut Rng, ids: &Ids, id: ResourceId, owner: Owner) {
        match owner {
            Owner::Stored => self.put("flare_resources", doc! { "_id": bson(id), "state": "any" }),
            Owner::BeingRemoved => self.job("remove-resource", id),
            // A job of another kind keeps nothing.
            _ => self.job("backfill", id),
        }
        let document = |number: u32| {
            let url = format!("http://api.example/{number}");
            doc! { "_id": { "resource": bson(id), "url": url }, "version": i64::from(number) }
        };
        let documents = (0..some(random)).map(document).collect();
        let what = format!("documents of resource {id}");
        self.put_all("flare_documents", (owner == Owner::Gone).then_some(&what), documents);
        // A job for somebody else.
        self.job("remove-resource", ids.old());
    }

    fn subscription(
        &mut self,
        random: &mut Rng,
        id: ResourceId,
        owner: Owner,
        resources: &[(ResourceId, Owner)],
    ) {
        let resource = resources[random.usize(..resources.len())].0;
        match owner {
            Owner::Stored => {
                let urls = vec![format!("http://{id}")];
                let subscription = doc! {
                    "_id": bson(id), "resource": bson(resource), "told": random.bool(),
                    "partition": random.i64(..3), "urls": urls,
                };
                self.put("flare_subscriptions", subscription);
            }
            Owner::BeingRemoved => self.job("remove-subscription", id),
            _ => {}
        }
        let gone = owner == Owner::Gone;
        let row = |number: u32| {
            let url = format!("http://api.example/{number}");
            doc! { "_id": { "subscription": bson(id), "url": url }, "resource": bson(resource) }
        };
        let rows = (0..some(random)).map(row).collect();
        let what = format!("rows of subscription {id}");
        self.put_all("flare_rows", gone.then_some(&what), rows);
        let lane = |number: u32| {
            doc! { "_id": { "subscription": bson(id), "shard": i64::from(number) }, "state": "{}" }
        };
        let lanes = (0..random.u32(..3)).map(lane).collect();
        let what = format!("lanes of subscription {id}");
        self.put_all("flare_lanes", gone.then_some(&what), lanes);
    }

    fn consumer(&mut self, random: &mut Rng, id: ResourceId, owner: Owner) {
        match owner {
            Owner::Stored => self.put("flare_consumers", doc! { "_id": bson(id) }),
            // No job removes a consumer, so none keeps what is left of one.
            Owner::BeingRemoved => self.job("remove-subscription", id),
            Owner::Young | Owner::Gone => {}
        }
        let reject = |number: u32| {
            let reject = ResourceId::from_bytes(u128::from(number).to_be_bytes());
            let key = doc! { "consumer": bson(id), "id": bson(reject) };
            doc! { "_id": key, "rejectedAt": i64::from(number) }
        };
        let rejects = (0..some(random)).map(reject).collect();
        let gone = matches!(owner, Owner::Gone | Owner::BeingRemoved);
        let what = format!("rejects of consumer {id}");
        self.put_all("flare_rejects", gone.then_some(&what), rejects);
    }

    /// Counts of seats, some of them wrong or missing.
    fn seats(&mut self, random: &mut Rng, resources: &[(ResourceId, Owner)]) {
        let subscriptions = self.records.get("flare_subscriptions").cloned().unwrap_or_default();
        let mut wrong_ones = 2;
        for (resource, owner) in resources {
            let of_resource = |record: &&Document| record["resource"] == bson(*resource);
            let members: Vec<_> = subscriptions.iter().filter(of_resource).collect();
            let mut counters = Vec::new();
            for number in 0..3_i64 {
                let there = |record: &&&Document| record["partition"] == Bson::Int64(number);
                let seated = i64::try_from(members.iter().filter(there).count()).unwrap();
                let subject = format!("seats of partition {number} of resource {resource}");
                let id = doc! { "resource": bson(*resource), "number": number };
                let wrong = wrong_ones > 0 && random.u8(..4) == 0;
                if wrong && random.bool() {
                    if seated > 0 {
                        wrong_ones -= 1;
                        self.miscounted.insert(format!("create {subject}"));
                        self.counts.insert(key(&id.into()), seated);
                    }
                    continue;
                }
                let taken = if wrong { seated + random.i64(1..4) } else { seated };
                let lately = random.bool();
                if wrong && !lately {
                    wrong_ones -= 1;
                    let from = format!("update {subject}, from {taken} taken, {seated} seated");
                    self.miscounted.insert(from);
                    self.counts.insert(key(&id.clone().into()), seated);
                } else {
                    self.counts.insert(key(&id.clone().into()), taken);
                }
                // Not just now: what is taken lately has to stay so, however long the visit takes.
                let soon = i64::try_from(LONG_AGO.as_nanos()).unwrap();
                let at =
                    if lately { nanos_ago(Duration::ZERO) + soon } else { nanos_ago(LONG_AGO) };
                let at = DateTime::from_millis(at / 1_000_000);
                counters.push(doc! { "_id": id, "seats": taken, "takenAt": at });
            }
            // Subscriptions keep the counts of a resource that is gone.
            let gone = *owner == Owner::Gone && members.is_empty();
            let what = format!("seat counters of resource {resource}");
            self.put_all("flare_partitions", gone.then_some(&what), counters);
        }
    }

    fn queue(&mut self, random: &mut Rng, number: u32) {
        let stored = random.bool();
        let foreign = random.u8(..4) == 0;
        let name = if foreign { format!("orders {number}") } else { format!("slot-{number}") };
        if stored {
            self.put("flare_queues", doc! { "_id": &name });
        }
        let mut messages = |ago: Duration| {
            let message = |_| doc! { "_id": ObjectId::new(), "queue": &name, "at": nanos_ago(ago) };
            (0..some(random)).map(message).collect::<Vec<_>>()
        };
        let (old, young) = (messages(LONG_AGO), messages(Duration::ZERO));
        let what = format!("messages of queue {name}");
        self.put_all("flare_messages", (!stored && !foreign).then_some(&what), old);
        self.put_all("flare_messages", None, young);
    }

    /// What looks like something of Flare's, and is not.
    fn foreign(&mut self, random: &mut Rng, ids: &Ids) {
        let gone = bson(ids.old());
        for collection in ["rows", "orders", "flare_unknown", "flare_rows_archive"] {
            let row = doc! { "_id": { "subscription": &gone, "url": "u" }, "queue": "slot-1" };
            self.put(collection, row);
        }
        let generic = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 16] };
        let short = Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 5] };
        for (collection, field) in [
            ("flare_rows", "subscription"),
            ("flare_lanes", "subscription"),
            ("flare_documents", "resource"),
            ("flare_partitions", "resource"),
            ("flare_rejects", "consumer"),
        ] {
            let mut strange = vec![
                doc! { "_id": "text" },
                doc! { "_id": 7 },
                doc! { "_id": {} },
                doc! { "_id": { field: "text" } },
                doc! { "_id": { "url": "first", field: &gone } },
                doc! { "_id": { "aaa": &gone } },
                doc! { "_id": { "zzz": &gone, field: &gone } },
                doc! { "_id": { field: generic.clone() } },
                doc! { "_id": { field: short.clone() } },
                doc! { "_id": ObjectId::new(), field: &gone },
            ];
            random.shuffle(&mut strange);
            strange.truncate(random.usize(..=strange.len()));
            self.put_all(collection, None, strange);
        }
        self.put("flare_messages", doc! { "_id": "text", "queue": 7 });
        self.put("flare_messages", doc! { "_id": "none" });
        self.put("flare_messages", doc! { "_id": "when", "queue": "slot-99" });
        self.put("flare_subscriptions", doc! { "_id": "text" });
        self.put("flare_resources", doc! { "_id": 7 });
        self.put("flare_consumers", doc! { "_id": "text" });
    }

    async fn store(&self, database: &Database) {
        for (name, records) in &self.records {
            if !records.is_empty() {
                let collection = database.collection::<Document>(name);
                collection.insert_many(records).await.unwrap();
            }
        }
        let rows = database.collection::<Document>("flare_rows");
        let host = IndexModel::builder().keys(doc! { "resource": 1 }).build();
        rows.create_index(host).await.unwrap();
    }

    /// What must be left of a dump.
    fn without_orphans(&self, mut dump: Dump) -> Dump {
        for (collection, id) in &self.orphans {
            let dumped = dump.get_mut(*collection).unwrap();
            assert!(dumped.records.remove(id).is_some());
        }
        dump
    }
}

fn id(ids: &Ids, owner: Owner, number: u64) -> ResourceId {
    if owner == Owner::Young { ids.young(number) } else { ids.old() }
}

/// Mostly few, at times more than one batch.
fn some(random: &mut Rng) -> u32 {
    match random.u8(..) {
        0 => random.u32(990..2_100),
        1..80 => 0,
        _ => random.u32(1..6),
    }
}

fn shown(steps: &[Step]) -> BTreeMap<String, u64> {
    steps.iter().map(|step| (step.id.clone(), step.amount.unwrap())).collect()
}

/// Says which world it was, if it did not turn out well.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("*** this world again: FLARE_TEST_SEED={}", self.0);
        }
    }
}

async fn visit(uri: &str, seed: u64) {
    let _told = Told(seed);
    let scratch = Scratch::new(uri);
    let database = scratch.database().await;
    MongoRepository::connect(scratch.config()).await.unwrap();
    let repository = MongoUpkeep::connect(scratch.config(), Part::Repository).await.unwrap();
    let queue = MongoUpkeep::connect(scratch.config(), Part::Queue).await.unwrap();
    for step in queue.plan(Purpose::Setup).await.unwrap() {
        queue.apply(Purpose::Setup, &step, &()).await.unwrap();
    }
    let mut random = Rng::with_seed(seed);
    let world = World::random(&mut random, &Ids::seeded(seed));
    world.store(&database).await;
    let before = dump(&database).await;

    let mut steps = repository.plan(Purpose::Cleanup).await.unwrap();
    let of_repository = steps.len();
    steps.extend(queue.plan(Purpose::Cleanup).await.unwrap());
    assert_eq!(shown(&steps), world.left_over, "seed {seed}");
    assert_eq!(dump(&database).await, before, "a plan changes nothing, seed {seed}");
    for (place, step) in steps.iter().enumerate() {
        let upkeep = if place < of_repository { &repository } else { &queue };
        let outcome = upkeep.apply(Purpose::Cleanup, step, &()).await.unwrap();
        assert_eq!(outcome, StepOutcome::Done, "{}, seed {seed}", step.id);
    }
    let after = dump(&database).await;
    assert_eq!(after, world.without_orphans(before), "seed {seed}");
    for upkeep in [&repository, &queue] {
        assert_eq!(upkeep.plan(Purpose::Cleanup).await.unwrap(), [], "seed {seed}");
        assert_eq!(upkeep.plan(Purpose::Setup).await.unwrap(), [], "seed {seed}");
    }
    put_right(&repository, &database, &world, after, seed).await;
}

async fn put_right(
    upkeep: &MongoUpkeep,
    database: &Database,
    world: &World,
    mut before: Dump,
    seed: u64,
) {
    let gone = |step: &str| {
        // A cleanup has removed some of the wrong counts with their resource.
        let resource = step.split(" of resource ").nth(1).unwrap_or_default();
        let resource = resource.split(',').next().unwrap_or_default();
        let removed = format!("delete seat counters of resource {resource}");
        step.starts_with("update") && world.left_over.contains_key(&removed)
    };
    let wrong: BTreeSet<_> = world.miscounted.iter().filter(|step| !gone(step)).cloned().collect();
    let steps = upkeep.plan(Purpose::Fixup).await.unwrap();
    let planned: BTreeSet<_> = steps.iter().map(|step| step.id.clone()).collect();
    assert_eq!(planned, wrong, "seed {seed}");
    for step in &steps {
        let outcome = upkeep.apply(Purpose::Fixup, step, &()).await.unwrap();
        assert_eq!(outcome, StepOutcome::Done, "{}, seed {seed}", step.id);
    }
    assert_eq!(upkeep.plan(Purpose::Fixup).await.unwrap(), [], "seed {seed}");
    let mut after = dump(database).await;
    let counters = after.remove("flare_partitions").unwrap();
    before.remove("flare_partitions").unwrap();
    assert_eq!(after, before, "only counts change, seed {seed}");
    for (id, record) in counters.records {
        let record = Document::from_reader(record.as_slice()).unwrap();
        if let Some(seats) = world.counts.get(&id) {
            assert_eq!(record["seats"], Bson::Int64(*seats), "{id}, seed {seed}");
        }
    }
}

async fn worlds(uri: String) {
    let given = std::env::var("FLARE_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    if let Some(seed) = given {
        return visit(&uri, seed).await;
    }
    let first = fastrand::u64(..1 << 32);
    for seed in first..first + WORLDS {
        visit(&uri, seed).await;
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("upkeep_worlds").test("a_cleanup_finds_exactly_what_is_nobodys", worlds)
}
