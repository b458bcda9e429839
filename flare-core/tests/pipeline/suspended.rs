//! A machine that was suspended for longer than its lease: whatever wakes first, nothing is sent.

use std::time::Duration;

use crate::support::{few_slots, in_memory};
use flare_core::cluster::ClusterSettings;
use flare_core::port::Clock;

/// More turns than the way of a change from its put to its request takes.
const WAY: u32 = 120;

async fn turns(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_is_sent_after_a_suspension_that_outlasted_the_lease() {
    let mut begun = 0;
    for step in 0..WAY {
        let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
        let resource = world.users().await;
        world.subscribe(&resource, "a").await;
        world.start();
        world.pass(Duration::from_secs(1)).await;
        world.put(1, 1).await;
        // Wherever the change is by now: the lease of 15 seconds is over when the machine wakes.
        turns(step).await;
        begun += world.delivery.total();
        let before = world.delivery.total();
        world.clock.suspend(Duration::from_secs(60));
        let awake = world.clock.now();
        turns(4 * WAY).await;
        assert_eq!(world.delivery.total(), before, "sent at {awake}, {step} turns after the put");
        world.crash().await;
    }
    assert!(begun > 0, "the way is longer than {WAY} turns");
}

#[tokio::test]
async fn a_node_that_wakes_goes_on_under_a_new_lease() {
    let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
    let resource = world.users().await;
    world.subscribe(&resource, "a").await;
    world.start();
    world.pass(Duration::from_secs(1)).await;
    world.clock.suspend(Duration::from_secs(3_600));
    world.put(1, 1).await;
    world.settled().await;
    assert_eq!(world.delivery.total(), 1);
}
