//! Nodes leave, shed load, and lead while they leave.

use flare_core::cluster::{Health, Roles};
use flare_core::port::Lease;

use crate::worker::Manners;
use crate::world::{World, secs};

const SLOTS: u32 = 60;

async fn cluster(names: &[&str], manners: Manners, seed: u64) -> World {
    let mut world = World::new(SLOTS, seed);
    names.iter().for_each(|name| world.start_as(name, manners, |_| {}));
    world.rest(secs(60)).await;
    world.pass(secs(20)).await;
    world.rest(secs(60)).await;
    world
}

#[tokio::test]
async fn a_node_that_leaves_hands_everything_over_before_it_goes() {
    for (seed, leader) in [(21, false), (22, true)] {
        let mut world = cluster(&["a", "b", "c"], Manners::After(secs(2)), seed).await;
        let leads = world.leader().await.unwrap();
        let name = ["a", "b", "c"].into_iter().find(|name| (*name == leads) == leader).unwrap();
        world.stop(name);
        world.until(secs(6), |world| world.has_ended(name)).await;
        assert_eq!(world.worked(), SLOTS as usize, "others work all of it by then");
        let view = world.view().await;
        assert_eq!((view.nodes.len(), view.unassigned), (2, 0));
        world.nodes.remove(name);
        world.rest(secs(10)).await;
        assert!(world.leader().await.is_some());
    }
}

#[tokio::test]
async fn the_last_node_leaves_without_waiting_for_anybody() {
    let mut world = cluster(&["a"], Manners::After(secs(2)), 23).await;
    world.node("a").handle.drain();
    let took = world.until(secs(4), |world| world.has_ended("a")).await;
    assert!(took >= secs(2), "what was under way finished");
    assert_eq!(world.view().await.nodes.len(), 0);
    assert_eq!(world.view().await.health, Health::Red);
}

#[tokio::test]
async fn a_leader_that_leaves_leads_on_while_nobody_else_can() {
    let mut world = World::new(SLOTS, 24);
    world.start("a");
    world.rest(secs(10)).await;
    world.start_as("b", Manners::AtOnce, |it| it.roles = Roles::NOT_ELIGIBLE);
    world.pass(secs(5)).await;
    world.stop("a");
    world.until(secs(5), |world| world.has_ended("a")).await;
    assert_eq!(world.works("b").len(), SLOTS as usize);
}

#[tokio::test]
async fn who_does_not_stop_in_time_is_stopped() {
    let mut world = cluster(&["a"], Manners::Never, 25).await;
    world.stop("a");
    world.until(secs(15), |world| world.has_ended("a")).await;
    assert_eq!(world.view().await.nodes.len(), 0);
}

#[tokio::test]
async fn a_lower_weight_sheds_step_by_step_and_a_wobble_moves_nothing() {
    let mut world = cluster(&["a", "b", "c"], Manners::AtOnce, 26).await;
    let before = world.works("a");
    for weight in [97, 104, 96, 100] {
        world.node("a").handle.set_weight(weight);
        world.pass(secs(5)).await;
        assert_eq!(world.works("a"), before);
    }
    world.node("a").handle.set_weight(0);
    // A quarter of all slots at a time, as set for these tests.
    world.until(secs(4), |world| world.works("a").len() < before.len()).await;
    assert!(world.works("a").len() + 15 >= before.len());
    world.until(secs(20), |world| world.works("a").is_empty()).await;
    assert_eq!(world.worked(), SLOTS as usize);
    world.node("a").handle.set_weight(100);
    world.until(secs(30), |world| world.works("a").len() >= 18).await;
}

#[tokio::test]
async fn a_node_that_dies_while_it_leaves_is_as_dead_as_any() {
    let mut world = cluster(&["a", "b", "c"], Manners::Never, 27).await;
    world.stop("b");
    world.pass(secs(1)).await;
    assert!(world.view().await.moving > 0);
    world.kill("b").await;
    world.until(secs(12), |world| world.worked() == SLOTS as usize).await;
}

#[tokio::test]
async fn any_node_can_be_asked_to_leave_from_any_other() {
    let mut world = cluster(&["a", "b", "c"], Manners::AtOnce, 28).await;
    let (asks, leaves) = (world.node("a").handle.clone(), world.node("c").handle.node().unwrap());
    asks.drain_node(leaves).await.unwrap();
    world.until(secs(3), |world| world.has_ended("c")).await;
    assert_eq!(world.worked(), SLOTS as usize);
    let refused = asks.drain_node(leaves).await.unwrap_err();
    assert_eq!(refused.kind(), flare_core::ErrorKind::NotFound);
    let left = world.memory.lease().list("cluster/drains/").await.unwrap();
    assert!(left.entries.is_empty(), "nothing is left of it");
}
