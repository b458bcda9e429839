//! One thing happens to a cluster at a time.

use std::sync::Arc;
use std::time::Duration;

use flare_core::Result;
use flare_core::cluster::{Health, Roles};
use flare_core::port::{Clock, Expect, Lease, Write};
use flare_testkit::ManualClock;
use flare_testkit::intercept::{self, Call, Hooks, LeaseHooks};

use crate::worker::Manners;
use crate::world::{TTL, World, secs};

const SLOTS: u32 = 60;

/// A cluster of these nodes, at rest.
async fn cluster(names: &[&str], seed: u64) -> World {
    let mut world = World::new(SLOTS, seed);
    names.iter().for_each(|name| world.start(name));
    world.rest(secs(60)).await;
    world.pass(secs(20)).await;
    world.rest(secs(60)).await;
    world
}

#[tokio::test]
async fn a_first_node_works_everything_at_once() {
    let mut world = World::new(SLOTS, 1);
    world.start("a");
    world.until(secs(1), |world| world.works("a").len() == SLOTS as usize).await;
    assert_eq!(world.leader().await.as_deref(), Some("a"));
    assert_eq!(world.view().await.health, Health::Green);
}

#[tokio::test]
async fn those_who_join_get_their_share_after_settling_and_nobody_is_disturbed_twice() {
    let mut world = cluster(&["a"], 2).await;
    world.start("b");
    world.pass(secs(2)).await;
    assert!(world.works("b").is_empty(), "it has not settled");
    world.until(secs(30), |world| world.works("b").len() >= 27).await;
    world.rest(secs(20)).await;
    let before = world.works("b");
    world.pass(secs(60)).await;
    assert_eq!(world.works("b"), before);
    assert!(world.works("a").len() <= 36 && world.works("b").len() <= 36);
}

#[tokio::test]
async fn slots_of_a_node_that_died_work_again_within_ttl_and_two_seconds() {
    for (seed, leader) in [(3, false), (4, true)] {
        let mut world = cluster(&["a", "b", "c"], seed).await;
        let leads = world.leader().await.unwrap();
        let name = ["a", "b", "c"].into_iter().find(|name| (*name == leads) == leader).unwrap();
        let kept: Vec<Vec<u32>> =
            world.nodes.keys().filter(|it| *it != name).map(|it| world.works(it)).collect();
        world.kill(name).await;
        let all = |world: &World| world.worked() == SLOTS as usize;
        world.until(TTL + secs(2), all).await;
        for (name, kept) in world.nodes.keys().zip(kept) {
            let works = world.works(name);
            assert!(kept.iter().all(|slot| works.contains(slot)), "only what was lost moves");
        }
    }
}

#[tokio::test]
async fn a_frozen_node_is_replaced_and_comes_back_with_nothing() {
    let mut world = cluster(&["a", "b", "c"], 5).await;
    let leads = world.leader().await.unwrap();
    let before = world.node(&leads).handle.node();
    world.node(&leads).gate.freeze();
    world.until(TTL, |world| world.works(&leads).is_empty()).await;
    world.until(secs(5), |world| world.worked() == SLOTS as usize).await;
    assert_ne!(world.leader().await, Some(leads.clone()));
    world.node(&leads).gate.thaw();
    world.pass(secs(1)).await;
    let after = world.node(&leads).handle.node();
    assert!(after.is_some() && after != before, "a fresh incarnation");
    world.rest(secs(60)).await;
    world.until(secs(60), |world| world.works(&leads).len() >= 18).await;
}

#[tokio::test]
async fn a_node_that_is_cut_off_stops_before_others_start() {
    let mut world = cluster(&["a", "b", "c"], 6).await;
    world.cut("b", true);
    world.until(TTL + secs(2), |world| world.works("b").is_empty()).await;
    world.until(secs(5), |world| world.worked() == SLOTS as usize).await;
    assert_eq!(world.node("b").handle.node(), None);
    world.cut("b", false);
    world.until(secs(60), |world| world.works("b").len() >= 18).await;
}

#[tokio::test]
async fn a_silent_watch_alone_costs_a_node_nothing_but_time() {
    let mut world = cluster(&["a", "b"], 7).await;
    // Just long enough for a watch to fall silent over somebody else's news.
    world.cut("b", true);
    world.node("a").handle.set_weight(99);
    world.pass(Duration::from_millis(10)).await;
    world.cut("b", false);
    world.start("c");
    world.until(secs(60), |world| world.works("c").len() >= 18).await;
    world.rest(secs(60)).await;
}

/// Answers reads late, by what was true when they were asked: a busy store, whose watches are faster.
#[derive(Debug)]
struct LateReads(ManualClock);

impl Hooks for LateReads {
    async fn after(&self, call: &Call<'_>) -> Result<()> {
        if call.name == "get" {
            self.0.sleep_until(self.0.now() + Duration::from_millis(1_900)).await;
        }
        Ok(())
    }
}

impl LeaseHooks for LateReads {
    const ELSEWHERE: bool = true;
}

#[tokio::test]
async fn a_plan_that_the_watch_overtook_costs_nobody_its_place() {
    let mut world = World::new(SLOTS, 17);
    let late = LateReads(world.clock.clone());
    world.lease = Arc::new(intercept::lease(Arc::clone(&world.lease), late));
    ["a", "b", "c"].into_iter().for_each(|name| world.start(name));
    world.pass(secs(20)).await;
    let before = ["a", "b", "c"].map(|name| world.node(name).handle.node());
    let plan = world.view().await.plan.unwrap().generation;
    // Weights that go up and down have slots move all the time, a plan a second.
    for round in 0..20 {
        world.node("a").handle.set_weight(if round % 2 == 0 { 1_000 } else { 10 });
        world.pass(secs(3)).await;
    }
    assert!(world.view().await.plan.unwrap().generation > plan + 40, "plans were written");
    assert_eq!(["a", "b", "c"].map(|name| world.node(name).handle.node()), before);
}

#[tokio::test]
async fn who_never_says_that_it_stopped_loses_the_slot_at_the_deadline() {
    let mut world = World::new(SLOTS, 8);
    world.start_as("a", Manners::Never, |_| {});
    world.rest(secs(10)).await;
    world.start("b");
    world.pass(secs(4)).await;
    assert!(world.view().await.moving > 0);
    assert!(world.works("b").is_empty());
    world.until(secs(20), |world| !world.works("b").is_empty()).await;
}

#[tokio::test]
async fn roles_say_who_leads_and_who_works() {
    let mut world = World::new(SLOTS, 9);
    world.start_as("ingest", Manners::AtOnce, |it| it.roles = Roles::INGEST_ONLY);
    world.pass(secs(5)).await;
    assert_eq!(world.leader().await.as_deref(), Some("ingest"));
    assert_eq!(world.view().await.health, Health::Red, "nobody works");
    world.start_as("worker", Manners::AtOnce, |it| it.roles = Roles::NOT_ELIGIBLE);
    world.rest(secs(10)).await;
    assert_eq!(world.works("worker").len(), SLOTS as usize);
    world.kill("ingest").await;
    world.pass(secs(30)).await;
    assert_eq!(world.leader().await, None, "a node that may not lead does not");
    assert_eq!(world.works("worker").len(), SLOTS as usize, "and works on");
    assert_eq!(world.view().await.health, Health::Yellow);
}

#[tokio::test]
async fn every_node_shows_the_same_cluster() {
    let world = cluster(&["a", "b", "c"], 10).await;
    let view = world.view().await;
    assert_eq!((view.health, view.nodes.len(), view.unassigned), (Health::Green, 3, 0));
    for node in world.nodes.values() {
        assert_eq!(node.handle.view(), view);
    }
}

#[tokio::test]
async fn a_lease_that_somebody_else_ended_is_noticed_at_once() {
    let mut world = cluster(&["a", "b", "c"], 12).await;
    let before = world.node("b").handle.node().unwrap();
    let key = format!("cluster/nodes/{before}");
    let lease = world.memory.lease().get(&key).await.unwrap().and_then(|entry| entry.lease);
    world.memory.lease().revoke(lease.unwrap()).await.unwrap();
    world.until(secs(1), |world| world.works("b").is_empty()).await;
    world.until(secs(1), |world| world.worked() == SLOTS as usize).await;
    world.until(secs(1), |world| world.node("b").handle.node().is_some()).await;
    assert_ne!(world.node("b").handle.node(), Some(before));
    world.until(secs(60), |world| world.works("b").len() >= 18).await;
}

#[tokio::test]
async fn a_node_with_another_number_of_slots_works_nothing_and_disturbs_nobody() {
    let mut world = cluster(&["a"], 14).await;
    world.slots += 1;
    world.start("b");
    world.slots -= 1;
    for _ in 0..30 {
        world.pass(secs(1)).await;
        assert!(world.works("b").is_empty());
        assert_eq!(world.works("a").len(), SLOTS as usize);
        assert!(world.view().await.nodes.len() <= 2, "it leaves no leases behind");
    }
    assert_eq!(world.leader().await.as_deref(), Some("a"));
}

#[tokio::test]
async fn a_pinned_slot_moves_to_its_node() {
    let mut world = cluster(&["a", "b", "c"], 13).await;
    let slot = world.works("a")[0];
    let pins = format!(r#"{{"{slot}":"c"}}"#);
    world.memory.lease().write(Write::new("cluster/pins", pins)).await.unwrap();
    world.until(secs(5), |world| world.works("c").contains(&slot)).await;
    world.rest(secs(20)).await;
    assert!(world.works("c").contains(&slot));
}

#[tokio::test]
async fn a_lost_store_of_leases_is_started_over_with_larger_epochs() {
    let mut world = cluster(&["a", "b"], 11).await;
    let before = world.view().await.plan.unwrap();
    let newest = |plan: &flare_core::cluster::SlotPlan| {
        plan.slots.iter().filter_map(|slot| slot.worker()).map(|(_, it)| it.epoch).max()
    };
    // The plan is deleted under everybody's feet; that it comes back is all that is promised then.
    world.forget_plan();
    world.memory.lease().delete("cluster/plan", Expect::Anything).await.unwrap();
    world.turns(100).await;
    for _ in 0..60 {
        world.pass_unchecked(secs(1)).await;
    }
    world.rest(secs(30)).await;
    let after = world.view().await.plan.unwrap();
    assert!(newest(&after) > newest(&before));
}
