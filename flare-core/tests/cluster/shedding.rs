//! A node that is overloaded gives slots away, a few at a time, and takes them back when it has been calm
//! for long.

use std::time::Duration;

use flare_core::cluster::{NodeLoad, NodeRecord};

use crate::worker::Manners;
use crate::world::{World, secs};

const SLOTS: u32 = 60;
/// A twentieth of the slots.
const MOVES: usize = 3;

async fn cluster(seed: u64, shed_load: bool) -> World {
    let mut world = World::new(SLOTS, seed);
    for name in ["a", "b", "c"] {
        world.start_as(name, Manners::After(secs(1)), |it| {
            (it.move_percent, it.move_every, it.shed_load) = (5, secs(2), shed_load);
        });
    }
    world.rest(secs(60)).await;
    world.pass(secs(60)).await;
    world.rest(secs(60)).await;
    world
}

async fn record(world: &World, name: &str) -> NodeRecord {
    let records = world.view().await.nodes.into_iter().filter_map(|node| node.record);
    records.map(|record| (*record).clone()).find(|record| record.name == name).unwrap()
}

async fn plans(world: &World) -> u64 {
    world.view().await.plan.unwrap().generation
}

/// Lets time pass with a node so busy; looks that no more slots move at a time than may.
async fn be(world: &mut World, name: &str, busy: u64, time: Duration) {
    world.node(name).handle.set_load(NodeLoad::new(20, 10, busy));
    for _ in 0..time.as_secs() {
        world.pass(secs(1)).await;
        assert!(world.view().await.moving <= MOVES);
    }
}

#[tokio::test]
async fn slots_leave_an_overloaded_node_slowly_and_come_back_after_long_calm() {
    let mut world = cluster(51, true).await;
    let before = plans(&world).await;
    be(&mut world, "a", 85, secs(600)).await;
    be(&mut world, "a", 100, secs(50)).await;
    assert_eq!(
        record(&world, "a").await.weight,
        100,
        "a busy node, and one that was just overloaded"
    );
    assert_eq!(plans(&world).await, before);

    be(&mut world, "a", 100, secs(30)).await;
    let told = record(&world, "a").await;
    assert_eq!((told.weight, told.shed_percent), (75, 25));
    be(&mut world, "a", 100, secs(300)).await;
    world.rest(secs(60)).await;
    assert_eq!(record(&world, "a").await.weight, 25, "no less, however long it lasts");
    // A quarter of the weight of each of the others is 6.67 slots, a tenth up or down.
    let left = world.works("a").len();
    assert!((6..=8).contains(&left), "{left} slots");
    // At most three at a time, each in two steps, and a few more plans on the way.
    let made = plans(&world).await - before;
    assert!(made <= 2 * (20 - left as u64).div_ceil(2) + 6, "{made} plans");

    // Within the band nothing happens.
    let before = plans(&world).await;
    for busy in [60, 89, 45, 90, 70] {
        be(&mut world, "a", busy, secs(120)).await;
    }
    assert_eq!(plans(&world).await, before);

    be(&mut world, "a", 10, secs(20)).await;
    for weight in [25, 50, 75, 100] {
        assert_eq!(record(&world, "a").await.weight, weight);
        be(&mut world, "a", 10, secs(600)).await;
    }
    world.rest(secs(60)).await;
    assert_eq!(record(&world, "a").await.shed_percent, 0);
    assert!(world.works("a").len() >= 18, "{} slots", world.works("a").len());
    let before = plans(&world).await;
    be(&mut world, "a", 10, secs(3_600)).await;
    assert_eq!(plans(&world).await, before);
}

#[tokio::test]
async fn what_the_host_sets_is_what_shedding_is_a_part_of() {
    let mut world = cluster(52, true).await;
    world.node("a").handle.set_weight(40);
    be(&mut world, "a", 100, secs(90)).await;
    assert_eq!(record(&world, "a").await.weight, 30);
    world.node("a").handle.set_weight(0);
    world.pass(secs(1)).await;
    assert_eq!(record(&world, "a").await.weight, 0, "nothing of nothing");
    world.node("a").handle.set_weight(1);
    be(&mut world, "a", 100, secs(300)).await;
    assert_eq!(record(&world, "a").await.weight, 1, "something of everything");
}

#[tokio::test]
async fn a_host_can_turn_it_off() {
    let mut world = cluster(53, false).await;
    let before = plans(&world).await;
    be(&mut world, "a", 100, secs(600)).await;
    let told = record(&world, "a").await;
    assert_eq!((told.weight, told.shed_percent, told.load.busy_percent), (100, 0, 100));
    assert_eq!(plans(&world).await, before);
}
