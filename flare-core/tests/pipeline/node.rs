//! What a node says of itself: whether it runs, what it works, and which of its loops is stuck.

use std::sync::Arc;
use std::time::Duration;

use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_testkit::{FaultPlan, FaultyRepository};

use crate::support::in_memory;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_node_whose_store_is_gone_says_which_loops_are_stuck() {
    let mut world = in_memory(Settings::default()).leased(ClusterSettings::default());
    assert!(!world.flare.node().running);
    let flare = world.start();
    let users = world.users().await;
    world.subscribe(&users, "c").await;
    world.put(1, 1).await;
    world.pass(Duration::from_secs(300)).await;

    let node = flare.node();
    assert!(node.running);
    assert_eq!(node.lanes, 1);
    assert_eq!(node.stuck(LIMIT).count(), 0, "{node:?}");
    let names: Vec<&str> = node.loops.iter().map(|it| it.name).collect();
    assert_eq!(names, ["jobs", "lane", "partition", "reconcile", "spread", "wake"]);

    let faults = FaultPlan::seeded(1).with_before(1.0);
    let broken = FaultyRepository::new(world.repository(), faults);
    let other = world.start_as(world.builder().repository(Arc::new(broken)));
    world.pass(Duration::from_secs(60)).await;
    let stuck: Vec<&str> = other.node().stuck(LIMIT).map(|it| it.name).collect();
    assert_eq!(stuck, ["jobs", "reconcile"]);
    assert_ne!(other.node().id, flare.node().id);

    world.crash().await;
    world.crash().await;
    assert!(!flare.node().running && !other.node().running);
}
