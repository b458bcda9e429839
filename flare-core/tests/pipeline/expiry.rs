//! What has outlived its retention is forgotten: tombstones and their rows once nothing is pending,
//! details of dead letters. What has something left to tell stays.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory, url};
use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{
    DocumentChange, DocumentKey, DocumentUrl, Job, JobKind, Present, Resource, Round, RowEffect,
    RowKey, Spread, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    Clock, DeliveryOutcome, DocumentStore, DocumentWrite, JobStore, Page, RowStore, RowUpdate,
    SubscriptionStore,
};
use flare_testkit::CountingRepository;
use futures::TryStreamExt;

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
    world.stores.repository().documents(vec![key]).await.unwrap().pop().unwrap().is_some()
}

#[tokio::test]
async fn a_tombstone_goes_with_its_rows_once_everybody_was_told() {
    let mut world = in_memory(brief());
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
    let mut world = in_memory(brief());
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
    let retry = RetryPolicy::builder()
        .num_retries(100)
        .min_delay_target(Duration::from_secs(60))
        .max_delay_target(Duration::from_secs(60));
    let spec = hook("b").retry(retry.build().unwrap());
    world.flare.create_subscription(resource.id, spec).await.unwrap().id
}

#[tokio::test]
async fn a_row_that_a_late_spread_makes_anew_never_wants_a_document_that_is_gone() {
    let mut world = in_memory(brief());
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
    let late = Spread::new(
        subscription.id,
        subscription.generation,
        DocumentKey::new(resource.id, DocumentUrl::parse(&url(1)).unwrap()),
        Version::gone(1.into()),
    );
    world.stores.repository().spread_rows(vec![late]).await.unwrap();
    world.pass(2 * MINUTE).await;
    assert!(known(&world, &resource, 1).await, "the second pass leaves it");
    world.until("it is forgotten", async || !known(&world, &resource, 1).await).await;
    assert_eq!(row().await, None);
    assert_eq!(world.stores.repository().count_pending(None).await.unwrap().count, 0);
}

#[tokio::test]
async fn a_row_that_a_late_spread_makes_after_its_tombstone_is_forgotten_too() {
    let mut world = in_memory(brief());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    world.put(1, 5).await;
    world.settled().await;
    world.delete(1).await;
    world.until("it is forgotten", async || !known(&world, &resource, 1).await).await;
    let row = async || world.row(subscription.id, 1).await;
    assert_eq!(row().await, None);
    let told = world.delivery.total();

    // A task that stood still inside its write.
    let late = Spread::new(
        subscription.id,
        subscription.generation,
        DocumentKey::new(resource.id, DocumentUrl::parse(&url(1)).unwrap()),
        Version::live(5.into()),
    );
    world.stores.repository().spread_rows(vec![late]).await.unwrap();
    world.pass(MINUTE / 2).await;
    assert!(row().await.is_some(), "a store may be behind for as long as a task lives");
    world.until("the row is forgotten", async || row().await.is_none()).await;
    assert_eq!(world.delivery.total(), told, "there is nothing to tell");

    assert_eq!(world.put(1, 3).await, DocumentChange::Created, "whatever its revision");
    world.settled().await;
    assert_eq!(world.delivery.total(), told + 1);
    assert_eq!(world.delivery.requests().pop().unwrap().request.action.as_str(), "create");
}

/// A worker that is frozen inside a spread's write for longer than any task lives writes it when the subscription has
/// been removed in both passes.
#[tokio::test]
async fn what_a_late_spread_makes_for_a_subscription_that_is_gone_is_forgotten_too() {
    let mut world = in_memory(brief());
    world.start();
    let resource = world.users().await;
    let [gone, there] =
        [world.subscribe(&resource, "a").await, world.subscribe(&resource, "b").await];
    world.put(1, 5).await;
    world.settled().await;
    world.flare.delete_subscription(gone.id).await.unwrap();
    let store = world.stores.repository();
    world.until("it is gone", async || store.subscription(gone.id).await.unwrap().is_none()).await;

    let key = DocumentKey::new(resource.id, DocumentUrl::parse(&url(1)).unwrap());
    let late = Spread::new(gone.id, gone.generation, key, Version::live(9.into()));
    store.spread_rows(vec![late]).await.unwrap();
    assert_eq!(store.count_pending(None).await.unwrap().count, 1);
    let forgotten = async || store.count_pending(None).await.unwrap().count == 0;
    world.until("nothing of it is pending", forgotten).await;
    let kept = RowKey::new(there.id, DocumentUrl::parse(&url(1)).unwrap());
    assert!(store.rows(vec![kept]).await.unwrap()[0].is_some(), "the others' rows stay");
}

#[tokio::test]
async fn a_dead_letter_is_dropped_after_its_retention_and_stays_given_up() {
    let mut world = in_memory(brief());
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
    let store = world.stores.repository();
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
    let mut world = in_memory(brief());
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
        assert_eq!(error.field(), Some(field));
    }
}

#[tokio::test]
async fn expiry_is_one_job_that_is_brought_back_if_it_is_lost() {
    let mut world = in_memory(brief());
    let expiry = async |world: &World| {
        let store = world.stores.repository();
        let jobs: Vec<Job> = store.due_jobs(Timestamp::MAX, 100).try_collect().await.unwrap();
        jobs.into_iter().filter(|job| job.kind == JobKind::Expire).collect::<Vec<_>>()
    };
    world.start();
    world.start();
    world.pass(MINUTE).await;
    let jobs = expiry(&world).await;
    assert_eq!(jobs.len(), 1);
    let store = world.stores.repository();
    let epoch = store.next_epoch().await.unwrap().epoch;
    store.finish_job(epoch, jobs[0].id).await.unwrap();
    world.pass(3 * MINUTE).await;
    assert_eq!(expiry(&world).await.len(), 1);
}

#[tokio::test]
async fn expiry_asks_for_the_rows_there_are_and_lets_other_jobs_have_their_turn() {
    const CLIENTS: u32 = 1_000;
    const TOMBSTONES: u32 = 1_000;
    const WITH_ROWS: u32 = 10;
    let mut counted = None;
    let mut settings = brief();
    settings.partition_limit = 1_000;
    let mut world = in_memory(settings).behind(|repository, _| {
        counted.insert(CountingRepository::new(repository).taking(100)).clone()
    });
    let counted = counted.unwrap();
    let resource = world.users().await;
    let store = world.stores.repository();
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(world.subscribe(&resource, &format!("client-{number}")).await);
    }
    // Settled long ago: nobody was told of most of these documents.
    let epoch = store.next_epoch().await.unwrap().epoch;
    for id in 0..TOMBSTONES {
        let key = DocumentKey::new(resource.id, DocumentUrl::parse(&url(id)).unwrap());
        let gone = DocumentWrite::delete(key.clone(), Some(1.into()));
        store.write_documents(vec![gone]).await.pop().unwrap().unwrap();
        let wanted = Version::gone(1.into());
        for client in clients.iter().take(if id < WITH_ROWS { 3 } else { 0 }) {
            let spread = Spread::new(client.id, client.generation, key.clone(), wanted);
            store.spread_rows(vec![spread]).await.unwrap();
            let key = RowKey::new(client.id, key.url.clone());
            let effect =
                RowEffect::Settle { version: wanted, present: Present::No, not_before: None };
            store
                .apply_rows(epoch, vec![RowUpdate { key, round: Round::ZERO, effect }])
                .await
                .pop()
                .unwrap()
                .unwrap();
        }
    }
    world.clock.advance_to(world.clock.now() + 11 * MINUTE);
    counted.take();
    world.start();
    world
        .until("all are forgotten", async || {
            let all = store.tombstones(None, Timestamp::MAX);
            all.try_collect::<Vec<_>>().await.unwrap().is_empty()
        })
        .await;
    let tally = counted.take();
    for client in &clients[..3] {
        assert_eq!(world.row(client.id, 0).await, None);
    }
    // Each pass asks once for each of the pages, and once more where an answer was full.
    let asked = tally.of("rows_of").calls;
    assert!(asked <= 2 * u64::from(TOMBSTONES / 100 + WITH_ROWS), "{tally}");
    let removals = tally.of("remove_settled_rows");
    assert!(removals.items <= u64::from(3 * WITH_ROWS), "{tally}");
    assert_eq!(tally.of("members").calls, 0, "{tally}");
}

#[tokio::test]
async fn many_rows_of_tombstones_go_in_turns_with_other_jobs_in_between() {
    let mut settings = brief();
    settings.partition_limit = 1_000;
    let mut world =
        in_memory(settings).behind(|repository, _| CountingRepository::new(repository).taking(1));
    let resource = world.users().await;
    let store = world.stores.repository();
    let client = world.subscribe(&resource, "a").await;
    let gone = world.subscribe(&resource, "b").await;
    for id in 0..200 {
        world.put(id, 1).await;
    }
    world.start();
    world.settled().await;
    for id in 0..200 {
        world.delete(id).await;
    }
    world.settled().await;
    world.crash().await;
    world.clock.advance_to(world.clock.now() + 11 * MINUTE);
    world.flare.delete_subscription(gone.id).await.unwrap();
    world.start();
    // One row at a time: expiry has many turns, the removal has one of them in between.
    let rows = async || {
        let mut rows = 0;
        for id in 0..200 {
            rows += u32::from(world.row(client.id, id).await.is_some());
        }
        rows
    };
    let left = async |id: SubscriptionId| {
        let keys = (0..200).map(|n| RowKey::new(id, DocumentUrl::parse(&url(n)).unwrap()));
        store.rows(keys.collect()).await.unwrap().into_iter().flatten().count()
    };
    let mut turns = BTreeSet::new();
    let mut removed_while_expiring = false;
    let end = world.clock.now() + 30 * MINUTE;
    while rows().await > 0 && world.clock.now() < end {
        let jobs: Vec<Job> = store.due_jobs(Timestamp::MAX, 10).try_collect().await.unwrap();
        let expiry = jobs.iter().find(|job| job.kind == JobKind::Expire).unwrap();
        turns.extend(expiry.cursor.clone());
        let (expiring, removing) = (left(client.id).await, left(gone.id).await);
        removed_while_expiring |= expiring > 0 && removing < 200;
        tokio::task::yield_now().await;
        world.clock.advance(Duration::ZERO).await;
    }
    assert_eq!(rows().await, 0);
    assert!(turns.len() >= 3, "it went on from: {turns:?}");
    assert!(removed_while_expiring, "the removal did not wait for all of it");
    world.until("all is forgotten", async || !known(&world, &resource, 199).await).await;
}
