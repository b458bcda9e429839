//! A burst of changes to many partitions on a slow store, and then one change now and then: nothing
//! is written twice, and nothing is left waiting.

use std::time::Duration;

use flare_core::Settings;
use flare_core::port::Clock;

use super::world::{Nodes, seconds, url};

const PARTITIONS: u32 = 400;
const BURST: u64 = 30;
/// One change in so much time.
const EVERY: Duration = Duration::from_secs(10);
/// What one call of the store takes. A change costs three calls for each partition, by four workers:
/// more than 8 s.
const SLOW: Duration = Duration::from_millis(28);

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.partition_limit = 1;
    settings.slots = Some(2);
    settings
}

/// Makes the run with so many nodes; the store stands still for a time in the middle of it.
async fn run(nodes: u64, still: Option<Duration>, single: u64) {
    let world = Nodes::new(nodes, SLOW, settings());
    world.resource("users", PARTITIONS).await;
    world.pass(seconds(20)).await;
    let began = world.clock.now();
    for number in 0..BURST {
        world.put(number as usize, url("users", number), 1);
    }
    for number in 0..single {
        if let Some(still) = still.filter(|_| number == 2) {
            world.store.stand_still(world.clock.now() + still);
        }
        world.pass(EVERY).await;
        world.put(number as usize, url("users", number % BURST), 2 + number);
    }
    let (rows, waiting) = (world.rows(), world.waiting().await);
    world.pass(seconds(1)).await;
    world.spread(seconds(600)).await;
    // What waits twice is found done, and goes.
    world.pass(seconds(120)).await;
    let needed = (BURST + single) * u64::from(PARTITIONS);
    let (written, left) = (world.rows(), world.waiting().await);
    let took = world.clock.now() - began;
    eprintln!(
        "{nodes} nodes, still {still:?}: {needed} rows needed, {rows} written when the last change \
         came and {written} in the end, {waiting} tasks waiting then, {left} in the end; {took:?}"
    );
    assert!(written * 100 <= needed * 105, "{written} rows written, {needed} needed");
    assert_eq!(left, 0, "tasks are left");
    assert_eq!(world.pending().await, BURST * u64::from(PARTITIONS), "a row each");
}

#[tokio::test]
async fn a_burst_on_a_slow_store_is_written_once() {
    run(1, None, 29).await;
}

#[tokio::test]
async fn many_nodes_write_a_burst_once() {
    for nodes in [3, 10] {
        run(nodes, None, 29).await;
    }
}

#[tokio::test]
async fn a_store_that_stood_still_is_not_flooded_afterwards() {
    for nodes in [1, 3, 10] {
        run(nodes, Some(seconds(60)), 12).await;
    }
}
