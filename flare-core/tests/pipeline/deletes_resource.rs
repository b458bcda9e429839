//! A resource is deleted only while nobody subscribes to it; what it leaves behind is removed.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{Stored as _, World, few_slots, hook, in_memory, url};
use flare_core::ErrorKind;
use flare_core::model::{
    Content, DocumentChange, DocumentKey, DocumentUrl, IdSource, Job, JobKind, Resource,
    ResourceId, ResourceState, Revision,
};
use flare_core::port::{
    Clock, DocumentStore, DocumentWrite, JobStore, Page, ResourceStore, SubscriptionStore,
};
use flare_testkit::{FaultPlan, FaultyRepository};

/// More than the time between both passes of a removal.
const BOTH_PASSES: Duration = Duration::from_secs(16 * 60);

async fn resource_of(world: &World, id: ResourceId) -> Option<Resource> {
    world.stores.repository().resource(id).await.unwrap()
}

async fn documents(world: &World, resource: ResourceId, count: u32) -> usize {
    let key = |id| DocumentKey::new(resource, DocumentUrl::parse(&url(id)).unwrap());
    let found = world.stores.repository().documents((0..count).map(key).collect()).await.unwrap();
    found.into_iter().flatten().count()
}

#[tokio::test]
async fn a_resource_is_deleted_once_it_has_no_subscriptions() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    for id in 0..30 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let conflict = world.flare.delete_resource(resource.id).await.unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    assert!(conflict.to_string().contains("subscriptions (1)"), "{conflict}");
    assert_eq!(world.put(0, 2).await, DocumentChange::Updated, "it goes on as before");
    // The job of that attempt finds nothing to do.
    world.until("the job is over", async || world.removals().await.is_empty()).await;

    world.flare.delete_subscription(subscription.id).await.unwrap();
    world.flare.delete_resource(resource.id).await.unwrap();
    let refused = world.flare.put_json(&url(1), r#"{"rev":2}"#).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    for answer in [
        world.flare.resource(resource.id).await.unwrap_err(),
        world.flare.delete_resource(resource.id).await.unwrap_err(),
        world.flare.subscriptions(resource.id, Page::new(30, 0)).await.unwrap_err(),
    ] {
        assert_eq!(answer.kind(), ErrorKind::NotFound, "{answer}");
    }
    // The same endpoint is free at once, and its documents are others.
    let heir = world.users().await;
    assert_eq!(world.put(0, 1).await, DocumentChange::Created);
    world.until("the documents go", async || documents(&world, resource.id, 30).await == 0).await;
    assert!(resource_of(&world, resource.id).await.is_some(), "kept for the second pass");
    world.pass(BOTH_PASSES).await;
    assert_eq!(resource_of(&world, resource.id).await, None);
    assert_eq!(documents(&world, heir.id, 30).await, 1);
    assert!(world.removals().await.is_empty());
}

#[tokio::test]
async fn the_second_pass_removes_a_document_that_was_put_meanwhile() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    world.flare.delete_resource(resource.id).await.unwrap();
    world.pass(Duration::from_secs(60)).await;
    // Found the resource before it was deleted, and was slow.
    let key = DocumentKey::new(resource.id, DocumentUrl::parse(&url(0)).unwrap());
    let content = Content::from_stored("{}".into());
    let late = DocumentWrite::put(key, Revision::new(1), content);
    world.stores.repository().write_documents(vec![late]).await.pop().unwrap().unwrap();
    world.pass(BOTH_PASSES).await;
    assert_eq!(documents(&world, resource.id, 1).await, 0);
    assert_eq!(resource_of(&world, resource.id).await, None);
}

#[tokio::test]
async fn a_deletion_that_was_not_concluded_is_concluded_by_its_job_or_by_the_next() {
    for (subscribed, retried) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = in_memory(few_slots());
        world.start();
        let resource = world.users().await;
        if subscribed {
            world.subscribe(&resource, "a").await;
        }
        // Somebody asked for the job, marked the resource, and died.
        let store = world.stores.repository();
        let now = world.clock.now();
        let id = IdSource::seeded(99).next(now).into();
        let mut job = Job::new(id, JobKind::RemoveResource, resource.id.to_string(), now);
        job.due = now + Duration::from_secs(30);
        store.insert_job(job).await.unwrap();
        let (active, deleting) = (ResourceState::Active, ResourceState::Deleting);
        assert!(store.move_resource(resource.id, active, deleting).await.unwrap());
        if retried {
            let answer = world.flare.delete_resource(resource.id).await;
            assert_eq!(answer.is_ok(), !subscribed, "{answer:?}");
        }
        world.pass(Duration::from_secs(40)).await;
        let state = resource_of(&world, resource.id).await.unwrap().state;
        let expected = if subscribed { ResourceState::Active } else { ResourceState::Deleted };
        assert_eq!(state, expected, "subscribed: {subscribed}, retried: {retried}");
    }
}

#[tokio::test]
async fn a_subscription_that_slipped_in_between_crossing_deletions_goes_with_its_resource() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let lost = world.subscribe(&resource, "a").await;
    let store = world.stores.repository();
    for (from, to) in [
        (ResourceState::Active, ResourceState::Deleting),
        (ResourceState::Deleting, ResourceState::Deleted),
    ] {
        assert!(store.move_resource(resource.id, from, to).await.unwrap());
    }
    let now = world.clock.now();
    let id = IdSource::seeded(99).next(now).into();
    let job = Job::new(id, JobKind::RemoveResource, resource.id.to_string(), now);
    store.insert_job(job).await.unwrap();
    world.pass(BOTH_PASSES).await;
    assert_eq!(resource_of(&world, resource.id).await, None);
    assert_eq!(world.stored(lost.id).await, None);
}

#[tokio::test]
async fn of_a_deletion_and_a_creation_at_once_one_backs_out() {
    let mut outcomes = BTreeSet::new();
    let mut settings = few_slots();
    settings.task_lifetime = Duration::from_secs(60);
    for seed in 0..40 {
        let mut world = in_memory(settings.clone()).behind(|repository, clock| {
            let late = FaultyRepository::new(repository, FaultPlan::seeded(seed));
            late.delaying(0.8, Duration::from_millis(100), clock)
        });
        let resource = world.users().await;
        let (deleted, created) = world
            .in_time(async {
                tokio::join!(
                    world.flare.delete_resource(resource.id),
                    world.flare.create_subscription(resource.id, hook("a"))
                )
            })
            .await;
        outcomes.insert((deleted.is_ok(), created.is_ok()));
        let state = resource_of(&world, resource.id).await.unwrap().state;
        let store = world.stores.repository();
        let listing = store.list_subscriptions(resource.id, Page::new(9, 0)).await.unwrap();
        let subscriptions = listing.total;
        match (&deleted, &created) {
            (Ok(()), Ok(_)) => panic!("seed {seed}: a subscription of a deleted resource"),
            (Ok(()), Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "seed {seed}");
                assert_eq!((state, subscriptions), (ResourceState::Deleted, 0), "seed {seed}");
            }
            (Err(error), created) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "seed {seed}: {error}");
                let left = u64::from(created.is_ok());
                assert_eq!((state, subscriptions), (ResourceState::Active, left), "seed {seed}");
            }
        }
        // A creation that backed out leaves nothing behind.
        world.start();
        world.until("all jobs are over", async || world.removals().await.is_empty()).await;
        world.crash().await;
    }
    assert!(outcomes.len() >= 2, "both have backed out: {outcomes:?}");
}
