//! A subscription or a consumer that is created, paused, resumed, replaced or deleted on one node is known to the
//! node that works it within a second, without a message that would say so.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flare_core::model::consumer::MappingInput;
use flare_core::model::{NewConsumer, SourceSettings, SubscriptionSpec};
use flare_core::port::{Expect, Lease, Outgoing};
use flare_testkit::{FaultPlan, FaultyLease, FaultyQueue};
use serde_json::json;

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

fn from_queue(queue: &str) -> NewConsumer {
    let mut mapping = MappingInput::default();
    mapping.url = "http://api.example/users/{/id}".to_owned();
    NewConsumer::new(SourceSettings::new("memory", json!({ "queue": queue })).unwrap(), mapping)
}

/// The same of consumers.
fn tells_of_consumers(world: &World) {
    world.broker.create_queue("first");
    world.broker.create_queue("second");
    let users = world.users("a");
    // As many as slots and more, so that each node works some.
    let create = |n: usize| {
        let flare = world.flare(["a", "b", "c"][n % 3]);
        let created = world.ask(flare.create_consumer(users.id, from_queue("first"))).unwrap();
        world.until(WITHIN, |world| world.consumers() == n + 1);
        created.id
    };
    let all: Vec<_> = (0..12).map(create).collect();
    for (n, id) in all.into_iter().enumerate() {
        let [one, another, third] = [0, 1, 2].map(|by| world.flare(["a", "b", "c"][(n + by) % 3]));
        let before = world.consumers();
        world.ask(one.pause_consumer(id)).unwrap();
        world.until(WITHIN, |world| world.consumers() == before - 1);
        world.ask(another.resume_consumer(id)).unwrap();
        world.until(WITHIN, |world| world.consumers() == before);
        let message = Outgoing::new(format!(r#"{{"id":"{n}","rev":1}}"#));
        world.broker.publish("second", message).unwrap();
        world.ask(third.replace_consumer(id, from_queue("second"))).unwrap();
        let url = format!("http://api.example/users/{n}");
        world.until(WITHIN, |world| world.ask(world.flare("a").document(&url)).is_ok());
        world.ask(one.delete_consumer(id)).unwrap();
        world.until(WITHIN, |world| world.consumers() == before - 1);
    }
    world.pass(secs(5));
    assert_eq!(world.consumers(), 0);
}

#[test]
fn news_arrive_by_watch_alone() {
    tells(&deaf(20, 0.0));
    tells_of_consumers(&deaf(23, 0.0));
}

#[test]
fn news_that_fell_between_two_watches_are_looked_for() {
    // Whatever happens, every watch breaks off instead of showing it.
    tells(&deaf(21, 1.0));
    tells_of_consumers(&deaf(24, 1.0));
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
