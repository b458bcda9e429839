//! Somebody sets the wall clock, back and forth: what the cluster waits for, and what it trusts, goes
//! by the clock that nobody can set.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flare_core::model::NodeId;
use flare_core::port::Clock;

use crate::worker::Manners;
use crate::world::{TTL, World, secs};

const SLOTS: u32 = 60;
const HOUR: Duration = Duration::from_secs(3_600);

async fn cluster(manners: Manners, seed: u64) -> World {
    let mut world = World::new(SLOTS, seed);
    ["a", "b", "c"].iter().for_each(|name| world.start_as(name, manners, |_| {}));
    world.rest(secs(60)).await;
    world.pass(secs(20)).await;
    world.rest(secs(60)).await;
    world
}

fn ids(world: &World) -> Vec<Option<NodeId>> {
    world.nodes.values().map(|node| node.handle.node()).collect()
}

/// Sets the wall clock of all nodes back by an hour, or forward.
fn set(world: &World, back: bool) {
    let now = world.clock.now();
    world.clock.set_wall(if back { now - HOUR } else { now + HOUR });
}

#[tokio::test]
async fn a_wall_clock_that_jumps_costs_nobody_its_registration_or_a_slot() {
    let mut world = cluster(Manners::AtOnce, 41).await;
    let before = ids(&world);
    assert!(before.iter().all(Option::is_some));
    let works: Vec<_> = ["a", "b", "c"].map(|name| world.works(name)).into();
    let writes = world.calls.writes.load(Ordering::Relaxed);
    for back in [true, false, false, true, true, true] {
        // At any moment between two keep-alives.
        world.pass(Duration::from_millis(700)).await;
        set(&world, back);
        for _ in 0..40 {
            world.pass(secs(1)).await;
            assert_eq!(world.worked(), SLOTS as usize);
        }
    }
    assert_eq!(ids(&world), before);
    assert_eq!(["a", "b", "c"].map(|name| world.works(name)).to_vec(), works);
    assert_eq!(world.calls.writes.load(Ordering::Relaxed), writes, "there was nothing to say");
}

#[tokio::test]
async fn a_node_that_dies_is_replaced_in_time_whatever_the_wall_clock_shows() {
    for (seed, back) in [(42, true), (43, false)] {
        let mut world = cluster(Manners::AtOnce, seed).await;
        let leads = world.leader().await.unwrap();
        world.kill(&leads).await;
        world.pass(secs(1)).await;
        set(&world, back);
        world.until(TTL + secs(1), |world| world.worked() == SLOTS as usize).await;
    }
}

#[tokio::test]
async fn a_hand_over_under_way_when_the_clock_jumps_has_one_worker_and_ends() {
    for manners in [Manners::After(secs(3)), Manners::Never] {
        for back in [true, false] {
            let mut world = cluster(manners, 44).await;
            world.node("a").handle.set_weight(0);
            world.pass(secs(1)).await;
            assert!(world.view().await.moving > 0);
            set(&world, back);
            // Two rounds of a quarter of the slots each, which take a deadline each at worst.
            world.until(secs(60), |world| world.works("a").is_empty()).await;
            world.until(secs(60), |world| world.worked() == SLOTS as usize).await;
        }
    }
}
