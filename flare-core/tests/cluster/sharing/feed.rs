//! A subscription that is created, paused, resumed, replaced or deleted on one node is known to the
//! node that works it within a second, without a message that would say so.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flare_core::model::SubscriptionSpec;
use flare_core::port::{Expect, Lease};
use flare_testkit::{FaultPlan, FaultyLease, FaultyQueue};

use super::world::{World, secs};

const WITHIN: Duration = Duration::from_secs(1);

/// A cluster whose queues lose everything they are given.
fn deaf(seed: u64, drop_watches: f64) -> World {
    let mut world = World::new(seed);
    let queue = FaultyQueue::new(world.memory.queue(), FaultPlan::seeded(seed)).losing(1.0);
    world.queue = Arc::new(queue);
    let lease = FaultyLease::new(world.memory.lease(), FaultPlan::seeded(seed));
    world.lease = Arc::new(lease.dropping_watches(drop_watches));
    ["a", "b", "c"].iter().for_each(|name| world.start(name));
    world.rest();
    world
}

/// What somebody does on any node is seen in what all of them work.
fn tells(world: &World) {
    let users = world.users("a");
    let mut clients = world.subscribe("b", &users, 6);
    world.until(WITHIN, |world| world.lanes() == 6);
    let client = clients.pop().unwrap().id;
    world.ask(world.flare("c").pause(client)).unwrap();
    world.until(WITHIN, |world| world.lanes() == 5);
    let spec = || SubscriptionSpec::post("http://other.example/{id}").lanes(3);
    world.ask(world.flare("a").replace_subscription(client, spec())).unwrap();
    world.ask(world.flare("b").resume(client)).unwrap();
    world.until(WITHIN, |world| world.lanes() == 8);
    for (name, client) in ["a", "b", "c"].iter().zip(&clients) {
        let before = world.lanes();
        world.ask(world.flare(name).delete_subscription(client.id)).unwrap();
        world.until(WITHIN, |world| world.lanes() == before - 1);
    }
    world.pass(secs(5));
    assert_eq!(world.lanes(), 5);
}

#[test]
fn news_arrive_by_watch_alone() {
    tells(&deaf(20, 0.0));
}

#[test]
fn news_that_fell_between_two_watches_are_looked_for() {
    // Whatever happens, every watch breaks off instead of showing it.
    tells(&deaf(21, 1.0));
}

#[test]
fn news_that_nobody_heard_are_found_when_there_is_another_leader() {
    let world = deaf(22, 0.0);
    let users = world.users("a");
    world.subscribe("b", &users, 6);
    world.until(WITHIN, |world| world.lanes() == 6);
    world.deaf.store(true, Ordering::Relaxed);
    for client in 0..6 {
        let spec = SubscriptionSpec::post(format!("http://unheard-{client}.example/{{id}}"));
        world.ask(world.flare("b").create_subscription(users.id, spec)).unwrap();
    }
    world.pass(secs(1));
    world.deaf.store(false, Ordering::Relaxed);
    // What is shown after it hides it for good, from whoever only looks for what is newer.
    ["a", "b", "c"].iter().for_each(|name| world.flare(name).member().set_weight(101));
    world.pass(secs(100));
    assert_eq!(world.lanes(), 6, "lost: the sweep that comes by itself is minutes away");
    let (before, works) = (world.view("a").leader, world.view("a").plan);
    world.ask(world.memory.lease().delete("cluster/leader", Expect::Anything)).unwrap();
    world.until(secs(6), |world| world.lanes() == 12);
    assert!(before.is_some() && world.view("a").leader.is_some());
    assert_eq!(world.view("a").plan, works, "no slot moved, which would have had the same effect");
}
