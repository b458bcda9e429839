//! A bulk import into a resource with many subscriptions, and single changes of another resource
//! meanwhile: these are told about as soon as without it.

use std::time::Duration;

use flare_core::Settings;
use flare_core::port::Clock;

use super::world::{Nodes, seconds, url};

const SLOW: Duration = Duration::from_millis(50);
const BULK: u64 = 500;
const SUBSCRIPTIONS: u32 = 1_000;

/// A world with a resource that has many subscriptions, and another whose client is told.
async fn made(partition_limit: u32, batch: usize) -> Nodes {
    let mut settings = Settings::default();
    settings.partition_limit = partition_limit;
    settings.batch = batch;
    settings.slots = Some(2);
    let world = Nodes::new(1, SLOW, settings);
    world.resource("bulk", SUBSCRIPTIONS).await;
    // So many that it has two partitions if partitions are small.
    let other = world.resource("other", 100).await;
    world.subscribe(&other, "told").await;
    world.pass(seconds(20)).await;
    world
}

/// Changes documents of the other resource, one after the other; gives how long it took until each
/// was told, longest last.
async fn tell(world: &Nodes, changes: u64, revision: u64) -> Vec<Duration> {
    let mut took = Vec::new();
    for number in 0..changes {
        let (began, before) = (world.clock.now(), world.delivery.total());
        world.put(0, url("other", number), revision);
        while world.delivery.total() == before {
            world.pass(Duration::from_millis(5)).await;
            assert!(world.clock.now() - began < seconds(60), "it is not told");
        }
        took.push(world.clock.now() - began);
        world.pass(Duration::from_millis(100)).await;
    }
    took.sort();
    took
}

async fn a_bulk_import_delays_nobody(partition_limit: u32, batch: usize) {
    let world = made(partition_limit, batch).await;
    // The first one finds the client's lane.
    tell(&world, 1, 1).await;
    let quiet = tell(&world, 10, 2).await;
    let before = world.rows();
    // One message each, before any change of the other resource.
    for number in 0..BULK {
        world.calm.put_json(&url("bulk", number), r#"{"rev":1}"#).await.unwrap();
    }
    let began = world.clock.now();
    let mut busy = Vec::new();
    let mut revision = 3;
    while world.spreading().await > BULK / 10 {
        busy.extend(tell(&world, 1, revision).await);
        revision += 1;
    }
    busy.sort();
    let took = world.clock.now() - began;
    world.spread(seconds(600)).await;
    let (quiet, longest) = (quiet[quiet.len() - 1], busy[busy.len() - 1]);
    eprintln!(
        "partitions of {partition_limit}: told within {quiet:?}, and within {longest:?} ({} times) \
         during {took:?} of a bulk import",
        busy.len(),
    );
    assert!(busy.len() >= 5, "the import took {took:?}: nothing was tried");
    assert!(longest < quiet * 3, "{longest:?}, and {quiet:?} without the import");
    let other = busy.len() as u64 * 101;
    let needed = BULK * u64::from(SUBSCRIPTIONS) + other;
    assert_eq!(world.rows() - before, needed, "rows are written once");
    world.pass(seconds(60)).await;
    assert_eq!(world.waiting().await, 0, "tasks are left");
}

#[tokio::test]
async fn a_bulk_import_into_one_partition_delays_nobody() {
    a_bulk_import_delays_nobody(1_000, 100).await;
}

#[tokio::test]
async fn a_bulk_import_into_many_partitions_delays_nobody() {
    a_bulk_import_delays_nobody(100, 100).await;
}

/// Many times what is taken from the queue at once: whoever waits behind all of it is found soon.
#[tokio::test]
async fn a_bulk_import_of_many_batches_delays_nobody() {
    a_bulk_import_delays_nobody(1_000, 10).await;
}

/// However many are at it: those that import wait for each other, and not for ever.
#[tokio::test]
async fn many_bulk_imports_all_come_to_an_end() {
    let mut settings = Settings::default();
    settings.slots = Some(2);
    settings.workers = 2;
    let world = Nodes::new(2, SLOW, settings);
    let names: Vec<String> = (0..6).map(|number| format!("bulk{number}")).collect();
    for name in &names {
        world.resource(name, 200).await;
    }
    world.pass(seconds(20)).await;
    for number in 0..100 {
        for name in &names {
            world.calm.put_json(&url(name, number), r#"{"rev":1}"#).await.unwrap();
        }
    }
    world.spread(seconds(120)).await;
    assert_eq!(world.rows(), 6 * 100 * 200);
    world.pass(seconds(60)).await;
    assert_eq!(world.waiting().await, 0, "tasks are left");
}
