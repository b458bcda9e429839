//! Queues of isolated lanes come and go with their subscriptions, by stored jobs; queues that vanish
//! come back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Settings;
use flare_core::model::{JobKind, LaneId, Placement, SubscriptionId};
use flare_core::port::{Incoming, Queue, QueueName, Receive};
use flare_core::{Error, ErrorKind, Result, Retry};
use flare_testkit::intercept::{self, Call, Hooks, QueueHooks};
use futures::TryStreamExt;

use crate::support::{Stored as _, World, few_slots, hook, in_memory};

/// May refuse to make queues of lanes for a while, and not have listeners notice that one is gone.
#[derive(Debug, Default)]
struct Picky {
    numb: AtomicBool,
    refuses: AtomicBool,
    refused: AtomicU32,
    created: Mutex<Vec<QueueName>>,
}

impl Hooks for Picky {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        let ("create", Some(queue @ QueueName::Lane(_))) = (call.name, call.queue) else {
            return Ok(());
        };
        if self.refuses.load(Ordering::Relaxed) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let error = Error::new(ErrorKind::Busy, "create");
            return Err(error.with_retry(Retry::After(Duration::from_secs(60))));
        }
        self.created.lock().unwrap().push(queue.clone());
        Ok(())
    }
}

#[async_trait]
impl QueueHooks for Picky {
    async fn receive(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        request: Receive,
    ) -> Result<Vec<Incoming>> {
        match inner.receive(queue, request).await {
            Err(error) if self.numb.load(Ordering::Relaxed) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                std::future::pending().await
            }
            received => received,
        }
    }
}

fn isolated() -> Settings {
    let mut settings = few_slots();
    settings.placement = Placement::Isolated;
    settings
}

fn picky(world: &mut World) -> Arc<Picky> {
    let queue = intercept::queue(world.stores.queue(), Picky::default());
    world.backend.queue = Some(Arc::new(queue.clone()));
    queue.hooks
}

async fn queues(world: &World) -> BTreeSet<QueueName> {
    world.stores.queue().list().try_collect().await.unwrap()
}

/// The shards of a subscription that have a queue.
async fn shards(world: &World, id: SubscriptionId) -> Vec<u16> {
    let queues = queues(world).await;
    let shard = |queue: QueueName| match queue {
        QueueName::Lane(lane) if lane.subscription == id => Some(lane.shard),
        _ => None,
    };
    let mut shards: Vec<u16> = queues.into_iter().filter_map(shard).collect();
    shards.sort_unstable();
    shards
}

async fn no_jobs(world: &World) {
    world.until("no job is left", async || world.removals().await.is_empty()).await;
}

#[tokio::test]
async fn queues_follow_the_lanes_of_a_subscription_from_its_creation_to_its_removal() {
    let mut world = in_memory(isolated());
    let resource = world.users().await;
    let spec = |lanes| hook("a").concurrency(8).lanes(lanes);
    // Paused before anything runs: no lane makes its queue by using it.
    let created = world.calm.create_subscription(resource.id, spec(3)).await.unwrap();
    world.calm.pause(created.id).await.unwrap();
    assert_eq!(shards(&world, created.id).await, [0_u16; 0], "nobody waits for queues");
    assert_eq!(world.removals().await[0].kind, JobKind::Queue);
    world.start();
    no_jobs(&world).await;
    assert_eq!(shards(&world, created.id).await, [0, 1, 2]);

    for lanes in [5, 1, 2] {
        world.calm.replace_subscription(created.id, spec(lanes)).await.unwrap();
        no_jobs(&world).await;
        assert_eq!(shards(&world, created.id).await, Vec::from_iter(0..lanes as u16));
    }
    world.calm.resume(created.id).await.unwrap();
    world.put(1, 1).await;
    world.settled().await;
    assert_eq!(shards(&world, created.id).await, [0, 1]);

    let other = world.subscribe(&resource, "b").await;
    world.calm.delete_subscription(created.id).await.unwrap();
    world.until("it is gone", async || world.stored(created.id).await.is_none()).await;
    assert_eq!(shards(&world, created.id).await, [0_u16; 0]);
    assert_eq!(shards(&world, other.id).await, [0], "another one's are its own");
    no_jobs(&world).await;
}

#[tokio::test]
async fn queues_follow_another_number_of_lanes_of_a_subscription_that_runs() {
    let mut world = in_memory(isolated());
    let resource = world.users().await;
    let spec = |lanes| hook("a").concurrency(8).lanes(lanes);
    let created = world.calm.create_subscription(resource.id, spec(3)).await.unwrap();
    world.start();
    for (rev, lanes) in [(1, 5), (2, 1), (3, 2)] {
        world.put(1, rev).await;
        world.settled().await;
        world.calm.replace_subscription(created.id, spec(lanes)).await.unwrap();
        no_jobs(&world).await;
        world.put(2, rev).await;
        world.settled().await;
        assert_eq!(shards(&world, created.id).await, Vec::from_iter(0..lanes as u16));
    }
}

#[tokio::test]
async fn a_queue_that_cannot_be_made_yet_is_tried_when_it_can() {
    let mut world = in_memory(isolated());
    let queue = picky(&mut world);
    queue.refuses.store(true, Ordering::Relaxed);
    let resource = world.users().await;
    let created = world.subscribe(&resource, "a").await;
    world.calm.pause(created.id).await.unwrap();
    world.start();
    world.until("it is refused", async || queue.refused.load(Ordering::Relaxed) > 0).await;
    queue.refuses.store(false, Ordering::Relaxed);
    world.pass(Duration::from_secs(50)).await;
    assert_eq!(queue.refused.load(Ordering::Relaxed), 1, "it is left alone for that long");
    assert!(queue.created.lock().unwrap().is_empty());
    no_jobs(&world).await;
    assert_eq!(*queue.created.lock().unwrap(), [QueueName::Lane(LaneId::new(created.id, 0))]);
}

#[tokio::test]
async fn whoever_dies_half_way_leaves_the_job_to_another() {
    let mut world = in_memory(isolated());
    let resource = world.users().await;
    let spec = hook("a").concurrency(64).lanes(40);
    let created = world.calm.create_subscription(resource.id, spec).await.unwrap();
    world.calm.pause(created.id).await.unwrap();
    for turns in 0..40 {
        world.start();
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        world.crash().await;
    }
    world.start();
    no_jobs(&world).await;
    assert_eq!(shards(&world, created.id).await, Vec::from_iter(0..40));
}

#[tokio::test]
async fn lanes_that_share_their_queues_have_none_of_their_own() {
    let mut world = in_memory(few_slots());
    let resource = world.users().await;
    world.start();
    let created = world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    world.settled().await;
    assert_eq!(shards(&world, created.id).await, [0_u16; 0]);
    assert!(world.removals().await.is_empty());
}

#[tokio::test]
async fn queues_that_vanish_unnoticed_are_made_again_by_the_sweep() {
    let mut world = in_memory(isolated());
    let queue = picky(&mut world);
    let resource = world.users().await;
    world.start();
    world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    world.settled().await;
    let before = queues(&world).await;
    assert_eq!(before.len(), 5, "two stages, two slots, a lane: {before:?}");
    queue.numb.store(true, Ordering::Relaxed);
    for name in &before {
        world.stores.queue().delete(name).await.unwrap();
    }
    world.pass(Duration::from_secs(10)).await;
    assert!(queues(&world).await.is_empty(), "nobody has noticed");
    world.pass(world.settings.sweep_every * 2).await;
    assert_eq!(queues(&world).await, before);
}

/// A worker that made a queue and died before it looked whether anybody needs it.
#[tokio::test]
async fn a_queue_of_a_subscription_that_is_gone_is_found_by_expiry() {
    let mut settings = isolated();
    settings.expire_every = Duration::from_secs(120);
    let mut world = in_memory(settings);
    world.start();
    let resource = world.users().await;
    let [gone, there] =
        [world.subscribe(&resource, "a").await, world.subscribe(&resource, "b").await];
    no_jobs(&world).await;
    world.flare.delete_subscription(gone.id).await.unwrap();
    world.until("it is gone", async || world.stored(gone.id).await.is_none()).await;

    let late = QueueName::Lane(LaneId::new(gone.id, 0));
    world.stores.queue().create(&late).await.unwrap();
    world.until("its queue is gone", async || shards(&world, gone.id).await.is_empty()).await;
    assert_eq!(shards(&world, there.id).await, [0], "the others' queues stay");
}
