//! Records that a newer Flare wrote, or nobody did, on the real server: everything else is delivered
//! after a restart, lists are given, and what cannot be read can be deleted.

use std::time::Duration;

use crate::support::world::{World, items, put, url};
use crate::support::{Scratch, spoil};
use flare_backend_mongo::MongoBackend;
use flare_core::Settings;
use flare_core::model::{
    DocumentKey, DocumentUrl, LaneId, NewResource, RecordName, Resource, RowKey, Subscription,
    SubscriptionSpec,
};
use flare_core::port::{Clock, DeliveryOutcome, Page, SystemClock};
use flare_testkit::Trials;
use flare_testkit::unreadable::Spoiling;
use mongodb::bson::{Bson, Document, doc};

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("unreadable")
        .test("a_field_of_a_newer_version_stops_nobody", unknown_field)
        .test("a_damaged_subscription_stops_nobody_else", damaged)
        .test("a_record_of_each_kind_spoilt_in_three_ways_stops_nobody_else", each_kind)
        .test("messages_that_cannot_be_read_stop_no_others", messages)
}

const LIMIT: Duration = Duration::from_secs(30);
/// A document that was put before the restart.
const BEFORE: usize = 9;

struct Stored {
    scratch: Scratch,
    resource: Resource,
    subscriptions: Vec<Subscription>,
}

/// A resource with three subscriptions, and nobody who runs.
async fn stored(uri: &str) -> Stored {
    let scratch = Scratch::new(uri);
    let world = start(&scratch).await;
    let resource = items(&world.flare).await;
    // Nobody takes anything yet: what is put now is due after the restart.
    for number in 0..3 {
        world.delivery.answer(client(number), DeliveryOutcome::answered(503));
    }
    let mut subscriptions = Vec::new();
    for number in 0..3 {
        let spec = SubscriptionSpec::post(client(number));
        subscriptions.push(world.flare.create_subscription(resource.id, spec).await.unwrap());
    }
    put(&world.flare, BEFORE, 1).await.unwrap();
    world.delivered(3).await;
    world.stop().await;
    Stored { scratch, resource, subscriptions }
}

async fn start(scratch: &Scratch) -> World {
    let backend = MongoBackend::connect(scratch.config()).await.unwrap();
    let mut settings = Settings::default();
    settings.slots = Some(4);
    World::start(backend, settings)
}

fn client(number: usize) -> String {
    format!("http://client-{number}.example/hook")
}

fn id(subscription: &Subscription) -> Bson {
    spoil::uuid(subscription.id.as_bytes())
}

impl Stored {
    /// Changes the record of the first subscription behind Flare's back.
    async fn spoil(&self, update: Document) {
        let records = self.scratch.database().await.collection::<Document>("flare_subscriptions");
        let first = doc! { "_id": id(&self.subscriptions[0]) };
        assert_eq!(records.update_one(first, update).await.unwrap().matched_count, 1);
    }

    async fn spec(&self) -> String {
        let records = self.scratch.database().await.collection::<Document>("flare_subscriptions");
        let first = records.find_one(doc! { "_id": id(&self.subscriptions[0]) }).await.unwrap();
        first.unwrap().get_str("spec").unwrap().to_owned()
    }
}

/// Puts a document and waits until it, and the one before the restart, were told to these
/// subscriptions, and to no others.
async fn told(world: &World, number: usize, to: &[usize]) {
    put(&world.flare, number, 1).await.unwrap();
    wait(world, number, to).await;
    wait(world, BEFORE, to).await;
}

async fn wait(world: &World, number: usize, to: &[usize]) {
    let told = |who: &usize| {
        let of = format!(r#""id":"{}""#, url(number));
        world.delivery.requests().iter().any(|it| {
            it.request.url.as_str() == client(*who)
                && String::from_utf8_lossy(&it.request.body).contains(&of)
        })
    };
    let clock = SystemClock::new();
    let give_up_at = clock.now() + LIMIT;
    while !to.iter().all(told) {
        if clock.now() > give_up_at {
            panic!("not told: {:?}", to.iter().filter(|who| !told(who)).collect::<Vec<_>>());
        }
        clock.sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((0..3).filter(told).collect::<Vec<_>>(), to);
}

/// One of each kind in each way; what is not spoilt is delivered, and the node says what is.
async fn each_kind(uri: String) {
    for how in [Spoiling::UnknownField, Spoiling::Newer, Spoiling::Damaged] {
        let stored = stored(&uri).await;
        let database = stored.scratch.database().await;
        let (of, first) = (stored.resource.id, stored.subscriptions[0].id);
        let document = |number| DocumentUrl::parse(&url(number)).unwrap();
        let world = start(&stored.scratch).await;
        told(&world, 1, &[0, 1, 2]).await;
        let other = NewResource::new("http://api.example/items/special/{id}").change_field("rev");
        let other = world.flare.create_resource(other).await.unwrap();
        world.stop().await;

        let lane = LaneId::new(first, 0);
        let records = [
            RecordName::Resource(other.id),
            RecordName::Subscription(first),
            RecordName::Document(DocumentKey::new(of, document(1))),
            RecordName::Row(RowKey::new(stored.subscriptions[1].id, document(1))),
            RecordName::Lane(lane),
        ];
        for record in &records {
            spoil::spoil(&database, record, how).await;
        }
        let job = database.collection::<Document>("flare_jobs");
        let (newer, odd) = (doc! { "needs": 3_i64 }, doc! { "epoch": "{" });
        let set = match how {
            Spoiling::UnknownField => doc! { "colour": "red" },
            Spoiling::Newer => newer,
            _ => odd,
        };
        job.update_many(doc! {}, doc! { "$set": set }).await.unwrap();

        let world = start(&stored.scratch).await;
        let to: &[usize] = if how == Spoiling::UnknownField { &[0, 1, 2] } else { &[1, 2] };
        put(&world.flare, 2, 1).await.unwrap();
        wait(&world, 2, to).await;
        let page = Page::new(10, 0);
        let listed = world.flare.subscriptions(of, page).await.unwrap();
        assert_eq!((listed.items.len(), listed.total), (to.len(), 3), "{how:?}");
        let listed = world.flare.resources(page).await.unwrap();
        assert_eq!(listed.items.len() + listed.unreadable.len(), 2, "{how:?}");
        let node = world.flare.node();
        assert_eq!(node.stuck(Duration::from_secs(30)).count(), 0);
        let unreadable = node.unreadable.iter().map(|it| &it.record);
        let names_it = unreadable.clone().any(|it| *it == RecordName::Subscription(first));
        assert_eq!(names_it, how != Spoiling::UnknownField, "{:?}", unreadable.collect::<Vec<_>>());
        world.flare.delete_resource(other.id).await.unwrap();
        world.flare.delete_subscription(first).await.unwrap();
        assert_eq!(world.flare.subscriptions(of, page).await.unwrap().total, 2);
        assert_eq!(world.flare.resources(page).await.unwrap().total, 1);
        world.stop().await;
    }
}

/// Messages that nobody wrote, or a newer version did, in every queue.
async fn messages(uri: String) {
    let stored = stored(&uri).await;
    let database = stored.scratch.database().await;
    let queues = database.collection::<Document>("flare_queues");
    let messages = database.collection::<Document>("flare_messages");
    let names = queues.distinct("_id", doc! {}).await.unwrap();
    for queue in &names {
        for odd in [
            doc! { "queue": queue, "at": 1_i64, "attempt": "x", "payload": "{" },
            doc! { "queue": queue, "at": 1_i64 },
            doc! { "_id": 7, "queue": queue, "at": 2_i64, "attempt": 0, "payload": Bson::Null },
            doc! { "queue": queue, "at": 3_i64, "attempt": 0, "colour": "red" },
        ] {
            // The same id in several queues is refused, which is no matter here.
            _ = messages.insert_one(odd).await;
        }
    }
    let world = start(&stored.scratch).await;
    told(&world, 1, &[0, 1, 2]).await;
    world.stop().await;
}

async fn unknown_field(uri: String) {
    let stored = stored(&uri).await;
    let newer = stored.spec().await.replacen('{', r#"{"colour":"red","#, 1);
    let newer = newer.replacen(r#""delivery":{"#, r#""delivery":{"bundle":{"max":10},"#, 1);
    stored.spoil(doc! { "$set": { "spec": newer, "shade": 7 } }).await;
    let world = start(&stored.scratch).await;
    told(&world, 1, &[0, 1, 2]).await;
    let listed = world.flare.subscriptions(stored.resource.id, Page::new(10, 0)).await.unwrap();
    assert_eq!((listed.items.len(), listed.total), (3, 3));
    world.flare.pause(stored.subscriptions[0].id).await.unwrap();
    let kept = stored.spec().await;
    assert!(kept.contains(r#""colour":"red""#), "{kept}");
    assert!(kept.contains(r#""bundle":{"max":10}"#), "{kept}");
    world.flare.delete_subscription(stored.subscriptions[0].id).await.unwrap();
    world.stop().await;
}

async fn damaged(uri: String) {
    let stored = stored(&uri).await;
    stored.spoil(doc! { "$set": { "spec": "{" } }).await;
    let world = start(&stored.scratch).await;
    told(&world, 1, &[1, 2]).await;
    let listed = world.flare.subscriptions(stored.resource.id, Page::new(10, 0)).await.unwrap();
    assert_eq!((listed.items.len(), listed.total), (2, 3));
    world.flare.delete_subscription(stored.subscriptions[0].id).await.unwrap();
    let listed = world.flare.subscriptions(stored.resource.id, Page::new(10, 0)).await.unwrap();
    assert_eq!((listed.items.len(), listed.total), (2, 2));
    world.stop().await;
}
