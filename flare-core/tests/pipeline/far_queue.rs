//! A queue that is far away: requests take their time, and whoever waits at a queue does not notice
//! that it is deleted before the wait is over. Both are so on SQS.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{World, few_slots};
use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{
    Clock, Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_testkit::ManualClock;
use tokio::sync::watch;

const TRIP: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct FarQueue {
    inner: Arc<dyn Queue>,
    clock: ManualClock,
    /// How often each queue was deleted.
    deleted: watch::Sender<HashMap<QueueName, u64>>,
}

impl FarQueue {
    fn before(world: &mut World) -> Arc<Self> {
        let (inner, clock) = (world.memory.queue(), world.clock.clone());
        let far = Arc::new(Self { inner, clock, deleted: watch::Sender::default() });
        world.backend.queue = Some(Arc::clone(&far) as Arc<dyn Queue>);
        far
    }
}

#[async_trait]
impl Queue for FarQueue {
    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        self.inner.create(queue).await
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        self.deleted.send_modify(|all| *all.entry(queue.clone()).or_default() += 1);
        self.inner.delete(queue).await
    }

    fn list(&self) -> Scan<'_, QueueName> {
        self.inner.list()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        self.inner.depth(queue).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        self.clock.sleep_until(self.clock.now() + TRIP).await;
        self.inner.send(queue, messages).await
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        let over = self.clock.now() + request.wait;
        let mut deleted = self.deleted.subscribe();
        let times = |all: &HashMap<QueueName, u64>| all.get(queue).copied().unwrap_or(0);
        let before = times(&deleted.borrow());
        let vanished = async { drop(deleted.wait_for(|all| times(all) > before).await) };
        tokio::select! {
            biased;
            () = vanished => {}
            received = self.inner.receive(queue, request) => return received,
        }
        self.clock.sleep_until(over).await;
        Ok(Vec::new())
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.inner.extend(queue, receipts, visibility).await
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        self.inner.settle(queue, settlements).await
    }
}

#[tokio::test]
async fn many_queues_are_told_side_by_side() {
    const SUBSCRIPTIONS: u64 = 40;
    let mut settings = few_slots();
    settings.slots = Some(64);
    let mut world = World::new(settings);
    FarQueue::before(&mut world);
    world.start();
    let users = world.users().await;
    for number in 0..SUBSCRIPTIONS {
        world.subscribe(&users, &format!("client-{number}")).await;
    }
    world.in_time(world.put(1, 1)).await;
    world.settled().await;
    let began = world.clock.now();
    world.in_time(world.put(1, 2)).await;
    world.settled().await;
    assert_eq!(world.delivery.total(), 2 * SUBSCRIPTIONS);
    let took = world.clock.now() - began;
    // One after the other they would take some thirty trips, a second and a half.
    assert!(took <= Duration::from_millis(700), "{took:?}");
    world.crash().await;
}

#[tokio::test]
async fn whoever_waits_at_a_deleted_queue_goes_on_at_the_new_one() {
    let mut settings = few_slots();
    settings.slots = Some(1);
    let mut world = World::new(settings);
    let far = FarQueue::before(&mut world);
    world.start();
    let users = world.users().await;
    world.subscribe(&users, "client").await;
    world.in_time(world.put(1, 1)).await;
    world.settled().await;
    // It waits there now.
    world.pass(Duration::from_secs(1)).await;
    for (rev, queue) in [(2, QueueName::Slot(0)), (3, QueueName::Partition)] {
        far.delete(&queue).await.unwrap();
        let began = world.clock.now();
        world.in_time(world.put(1, rev)).await;
        world.settled().await;
        let took = world.clock.now() - began;
        assert!(took <= Duration::from_secs(2), "{queue}: {took:?}");
    }
    assert_eq!(world.delivery.total(), 3);
    world.crash().await;
}
