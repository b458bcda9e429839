//! What has outlived its retention is forgotten: tombstones and their rows once nothing is pending,
//! details of dead letters. What has something left to tell stays.

#![allow(clippy::unwrap_used, clippy::panic, reason = "it is a test")]

mod support;

use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{
    DocumentChange, DocumentKey, DocumentUrl, JobKind, Resource, Spread, SubscriptionId, Timestamp,
    Version,
};
use flare_core::pipeline::Settings;
use flare_core::port::{DeliveryOutcome, DocumentStore, JobStore, Page, RowStore};
use support::{World, few_slots, hook, url};

const MINUTE: Duration = Duration::from_secs(60);

/// Tombstones go after 10 minutes, dead letters after 30.
fn brief() -> Settings {
    let mut settings = few_slots();
    settings.partition_limit = 2;
    settings.task_lifetime = MINUTE;
    settings.expire_every = 2 * MINUTE;
    settings.tombstone_retention = 10 * MINUTE;
    settings.dead_letter_retention = 30 * MINUTE;
    settings
}

/// Whether the store knows anything of a document.
async fn known(world: &World, resource: &Resource, id: u32) -> bool {
    let key = DocumentKey::new(resource.id, DocumentUrl::parse(&url(id)).unwrap());
    world.memory.repository().documents(vec![key]).await.unwrap().pop().unwrap().is_some()
}

#[tokio::test]
async fn a_tombstone_goes_with_its_rows_once_everybody_was_told() {
    let mut world = World::new(brief());
    world.start();
    let resource = world.users().await;
    let mut subscriptions = Vec::new();
    // More than a partition.
    for name in ["a", "b", "c", "d", "e"] {
        subscriptions.push(world.subscribe(&resource, name).await);
    }
    for id in 1..=2 {
        world.put(id, 5).await;
    }
    world.settled().await;
    world.delete(1).await;
    world.settled().await;
    assert_eq!(world.put(1, 5).await, DocumentChange::Stale, "the tombstone holds");

    world.pass(9 * MINUTE).await;
    assert!(known(&world, &resource, 1).await, "not before its retention is over");
    assert!(world.row(subscriptions[0].id, 1).await.is_some());
    world.until("it is forgotten", async || !known(&world, &resource, 1).await).await;
    for subscription in &subscriptions {
        assert_eq!(world.row(subscription.id, 1).await, None);
        assert!(world.row(subscription.id, 2).await.is_some(), "of a document that lives");
    }
    assert!(known(&world, &resource, 2).await);

    let told = world.delivery.total();
    assert_eq!(world.put(1, 3).await, DocumentChange::Created, "whatever its revision");
    world.settled().await;
    assert_eq!(world.delivery.total(), told + 5);
    let last = world.delivery.requests().pop().unwrap();
    assert_eq!(last.request.action.as_str(), "create");
}

#[tokio::test]
async fn a_tombstone_somebody_has_not_been_told_of_stays() {
    let mut world = World::new(brief());
    world.start();
    let resource = world.users().await;
    let told = world.subscribe(&resource, "a").await;
    let patient = subscribe_patiently(&world, &resource).await;
    world.put(1, 1).await;
    world.settled().await;
    world.delivery.answer("http://b.example/1", DeliveryOutcome::answered(503));
    world.delete(1).await;
    world.pass(20 * MINUTE).await;
    assert!(known(&world, &resource, 1).await);
    assert_eq!(world.row(told.id, 1).await, None, "its row goes");
    assert!(world.row(patient, 1).await.unwrap().is_pending());

    world.delivery.answer("http://b.example/1", DeliveryOutcome::answered(200));
    world.settled().await;
    world.until("it is forgotten", async || !known(&world, &resource, 1).await).await;
    assert_eq!(world.row(patient, 1).await, None);
    assert_eq!(world.delivery.requests().pop().unwrap().request.action.as_str(), "delete");
}

/// A client that is tried every minute for a long time.
async fn subscribe_patiently(world: &World, resource: &Resource) -> SubscriptionId {
    let retry = RetryPolicy::builder().num_retries(100).min_delay_target(60).max_delay_target(60);
    let spec = hook("b").retry(retry.build().unwrap());
    world.flare.create_subscription(&resource.id, spec).await.unwrap().id
}

#[tokio::test]
async fn a_row_that_a_late_spread_makes_anew_never_wants_a_document_that_is_gone() {
    let mut world = World::new(brief());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    world.settled().await;
    world.delete(1).await;
    world.settled().await;
    let row = async || world.row(subscription.id, 1).await;
    world.until("the first pass removes its row", async || row().await.is_none()).await;
    assert!(known(&world, &resource, 1).await);
    // A task that was under way all the time.
    let late = Spread {
        subscription: subscription.id,
        generation: subscription.generation,
        document: DocumentKey::new(resource.id, DocumentUrl::parse(&url(1)).unwrap()),
        wanted: Version::gone(1.into()),
    };
    world.memory.repository().spread_rows(vec![late]).await.unwrap();
    world.pass(2 * MINUTE).await;
    assert!(known(&world, &resource, 1).await, "the second pass leaves it");
    world.until("it is forgotten", async || !known(&world, &resource, 1).await).await;
    assert_eq!(row().await, None);
    assert_eq!(world.memory.repository().count_pending(None).await.unwrap().count, 0);
}

#[tokio::test]
async fn a_dead_letter_is_dropped_after_its_retention_and_stays_given_up() {
    let mut world = World::new(brief());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    world.delivery.answer("http://a.example/1", DeliveryOutcome::answered(500));
    world.put(1, 1).await;
    world.settled().await;
    world.pass(25 * MINUTE).await;
    world.delivery.answer("http://a.example/2", DeliveryOutcome::answered(500));
    world.put(2, 1).await;
    world.settled().await;
    let store = world.memory.repository();
    let listed = async || store.dead_letters(subscription.id, Page::new(30, 0)).await.unwrap();
    assert_eq!(listed().await.total, 2);
    world.pass(8 * MINUTE).await;
    let left = listed().await;
    assert_eq!((left.total, left.items[0].key.url.as_str()), (1, &*url(2)));
    let row = world.row(subscription.id, 1).await.unwrap();
    assert!(!row.is_pending());
    assert_eq!((row.given_up, row.dead), (Some(Version::live(1.into())), None));
}

#[tokio::test]
async fn a_dead_letter_keeps_its_tombstone_until_it_is_dropped() {
    let mut world = World::new(brief());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    world.settled().await;
    world.delivery.answer("http://a.example/1", DeliveryOutcome::answered(500));
    world.delete(1).await;
    world.settled().await;
    world.pass(25 * MINUTE).await;
    assert!(world.row(subscription.id, 1).await.unwrap().dead.is_some());
    assert!(known(&world, &resource, 1).await);
    world.until("it is forgotten", async || !known(&world, &resource, 1).await).await;
    assert_eq!(world.row(subscription.id, 1).await, None);
}

#[tokio::test]
async fn a_retention_of_nothing_is_refused() {
    type Spoil = fn(&mut Settings);
    let wrong: [(&str, Spoil); 4] = [
        ("task_lifetime", |settings| settings.task_lifetime = Duration::ZERO),
        ("expire_every", |settings| settings.expire_every = Duration::ZERO),
        ("tombstone_retention", |settings| settings.tombstone_retention = Duration::ZERO),
        ("dead_letter_retention", |settings| settings.dead_letter_retention = Duration::ZERO),
    ];
    for (field, spoil) in wrong {
        let mut settings = Settings::default();
        spoil(&mut settings);
        let error = Flare::builder(MemoryBackend::new()).settings(settings).build().unwrap_err();
        assert_eq!(error.field_name(), Some(field));
    }
}

#[tokio::test]
async fn expiry_is_one_job_that_is_brought_back_if_it_is_lost() {
    let mut world = World::new(brief());
    let expiry = async |world: &World| {
        let jobs = world.memory.repository().due_jobs(Timestamp::MAX, 100).await.unwrap();
        jobs.into_iter().filter(|job| job.kind == JobKind::Expire).collect::<Vec<_>>()
    };
    world.start();
    world.start();
    world.pass(MINUTE).await;
    let jobs = expiry(&world).await;
    assert_eq!(jobs.len(), 1);
    let store = world.memory.repository();
    let epoch = store.next_epoch().await.unwrap().epoch;
    store.finish_job(epoch, jobs[0].id).await.unwrap();
    world.pass(3 * MINUTE).await;
    assert_eq!(expiry(&world).await.len(), 1);
}
