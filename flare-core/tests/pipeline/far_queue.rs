//! A queue that is far away: requests take their time, and whoever waits at a queue does not notice
//! that it is deleted before the wait is over. Both are so on SQS.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{World, few_slots, in_memory};
use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{Clock, Incoming, Queue, QueueName, Receive};
use flare_testkit::ManualClock;
use flare_testkit::intercept::{self, Call, Hooks, QueueHooks};
use tokio::sync::watch;

const TRIP: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Far {
    clock: ManualClock,
    /// How often each queue was deleted.
    deleted: watch::Sender<HashMap<QueueName, u64>>,
}

/// Has the world's queue far away.
fn far_away(world: &mut World) {
    let far = Far { clock: world.clock.clone(), deleted: watch::Sender::default() };
    world.backend.queue = Some(Arc::new(intercept::queue(world.stores.queue(), far)));
}

impl Hooks for Far {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        match (call.name, call.queue) {
            ("send", _) => self.clock.sleep(TRIP).await,
            ("delete", Some(queue)) => {
                self.deleted.send_modify(|all| *all.entry(queue.clone()).or_default() += 1);
            }
            _ => {}
        }
        Ok(())
    }
}

#[async_trait]
impl QueueHooks for Far {
    async fn receive(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        request: Receive,
    ) -> Result<Vec<Incoming>> {
        let over = self.clock.now() + request.wait;
        let mut deleted = self.deleted.subscribe();
        let times = |all: &HashMap<QueueName, u64>| all.get(queue).copied().unwrap_or(0);
        let before = times(&deleted.borrow());
        let vanished = async { drop(deleted.wait_for(|all| times(all) > before).await) };
        tokio::select! {
            biased;
            () = vanished => {}
            received = inner.receive(queue, request) => return received,
        }
        self.clock.sleep_until(over).await;
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn many_queues_are_told_side_by_side() {
    const SUBSCRIPTIONS: u64 = 40;
    let mut settings = few_slots();
    settings.slots = Some(64);
    let mut world = in_memory(settings);
    far_away(&mut world);
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
    let mut world = in_memory(settings);
    far_away(&mut world);
    world.start();
    let users = world.users().await;
    world.subscribe(&users, "client").await;
    world.in_time(world.put(1, 1)).await;
    world.settled().await;
    // It waits there now.
    world.pass(Duration::from_secs(1)).await;
    for (rev, queue) in [(2, QueueName::Slot(0)), (3, QueueName::Partition)] {
        world.queue().delete(&queue).await.unwrap();
        let began = world.clock.now();
        world.in_time(world.put(1, rev)).await;
        world.settled().await;
        let took = world.clock.now() - began;
        assert!(took <= Duration::from_secs(2), "{queue}: {took:?}");
    }
    assert_eq!(world.delivery.total(), 3);
    world.crash().await;
}
