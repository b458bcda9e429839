//! One thing happens to a cluster of Flares at a time.

use std::sync::Arc;
use std::time::Duration;

use flare_core::cluster::{ClusterSettings, Health, Membership, NodeRecord, Roles};
use flare_core::{ErrorKind, Flare};

use super::world::{SLOTS, TTL, World, secs};

const CLIENTS: u32 = 24;

/// A cluster at rest, with clients in all its slots.
fn cluster(names: &[&str], seed: u64) -> World {
    let world = World::of(names, seed);
    let users = world.users(names[0]);
    world.subscribe(names[0], &users, CLIENTS);
    world.pass(secs(2));
    world
}

fn all_told(revision: i64) -> impl Fn(&World) -> bool {
    move |world| world.told(revision).len() >= CLIENTS as usize
}

#[test]
fn nodes_share_the_clients_and_show_the_same_cluster() {
    let world = cluster(&["a", "b", "c"], 1);
    assert!(world.put("b", 1, 1).unwrap().notifies());
    world.until(secs(1), all_told(1));
    assert_eq!(world.tellers(1).len(), 3, "each has its part");
    world.pass(secs(120));
    assert_eq!(world.told(1).len(), CLIENTS as usize, "each client is told once");
    let view = world.view("a");
    assert_eq!((view.health, view.nodes.len(), view.unassigned), (Health::Green, 3, 0));
    let slots = view.plan.as_ref().unwrap().slots.len();
    assert_eq!(slots, SLOTS as usize, "as many as the pipeline has");
    assert!(["b", "c"].iter().all(|name| world.view(name) == view));
    assert_eq!(world.lanes(), CLIENTS as usize);
}

#[test]
fn a_handle_whose_runtime_is_not_run_is_no_member() {
    let world = World::new(2);
    let builder = Flare::builder(world.memory.clone()).delivery(Arc::new(world.hosts.clone()));
    let (flare, runtime) = builder.build().unwrap();
    assert!(world.ask(flare.cluster()).unwrap().nodes.is_empty());
    assert_eq!(flare.node().membership, Membership::Outside);
    runtime.unused();
    assert_eq!(flare.node().membership, Membership::Left);
}

#[test]
fn settings_that_contradict_each_other_are_refused_by_name() {
    let mut settings = ClusterSettings::default();
    settings.hand_over_limit = settings.ttl / 2;
    let world = World::new(11);
    let builder = Flare::builder(world.memory.clone()).delivery(Arc::new(world.hosts.clone()));
    let error = builder.cluster(settings).build().unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("hand_over_limit")));
}

#[test]
fn a_node_that_joins_takes_its_part_and_nobody_is_told_twice() {
    let mut world = cluster(&["a"], 3);
    world.hosts.take(Duration::from_millis(300));
    world.start("b");
    // Changes all the while slots move.
    for revision in 1..=30 {
        world.put("a", 1, revision).unwrap();
        world.pass(Duration::from_millis(700));
    }
    world.until(secs(5), all_told(30));
    assert_eq!(world.tellers(30).len(), 2);
    for revision in 1..=30 {
        assert!(world.told(revision).len() <= CLIENTS as usize, "{revision}");
    }
}

#[test]
fn lanes_of_a_node_that_died_work_again_within_ttl_and_two_seconds() {
    let mut world = cluster(&["a", "b", "c"], 4);
    world.hosts.take(secs(3));
    world.put("a", 1, 1).unwrap();
    world.pass(Duration::from_millis(500));
    let in_flight = world.hosts.in_flight("b");
    assert!(in_flight > 0);
    world.kill("b");
    world.put("a", 1, 2).unwrap();
    let others = CLIENTS as usize - in_flight;
    assert_eq!(world.told(2).len(), 0, "one request at a time");
    world.until(secs(4), |world| world.told(2).len() == others);
    world.until(TTL + secs(2), all_told(2));
    assert!(!world.tellers(2).contains("b"));
}

#[test]
fn a_node_that_is_drained_hands_over_and_leaves_and_nobody_is_told_twice() {
    let mut world = cluster(&["a", "b", "c"], 5);
    world.hosts.take(secs(3));
    world.put("a", 1, 1).unwrap();
    world.pass(Duration::from_millis(500));
    assert!(world.hosts.in_flight("b") > 0);
    let b = world.flare("b").member().node().unwrap();
    world.ask(world.flare("a").drain_node(b)).unwrap();
    world.pass(secs(1));
    assert_eq!(world.view("c").health, Health::Yellow);
    assert!(world.hosts.in_flight("b") > 0, "what is in flight may finish");
    assert_eq!(world.flare("b").node().membership, Membership::Leaving);
    world.until(secs(20), |world| world.view("c").nodes.len() == 2);
    assert_eq!(world.told(1).len(), CLIENTS as usize, "nothing was sent again");
    assert_eq!(world.view("c").health, Health::Green);
    world.put("b", 1, 2).unwrap();
    world.until(secs(5), all_told(2));
    assert!(!world.tellers(2).contains("b"));
    assert!(!world.nodes["b"].has_ended(), "it goes on taking documents");
    let membership = |name: &str| world.flare(name).node().membership;
    assert_eq!([membership("a"), membership("b")], [Membership::Member, Membership::Left]);
    let error = world.ask(world.flare("a").drain_node(b)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // One that is asked to end does the same, and ends.
    world.nodes.get_mut("a").unwrap().stop();
    world.nodes.get_mut("b").unwrap().stop();
    world.until(secs(20), |world| ["a", "b"].iter().all(|name| world.nodes[*name].has_ended()));
    world.put("c", 1, 3).unwrap();
    world.until(secs(5), all_told(3));
    assert_eq!(world.tellers(3).into_iter().collect::<Vec<_>>(), ["c"]);
    assert_eq!(world.told(2).len() + world.told(3).len(), 2 * CLIENTS as usize);
}

#[test]
fn the_last_node_ends_in_time_however_long_its_requests_take() {
    let mut world = cluster(&["a"], 6);
    world.hosts.take(secs(50));
    world.put("a", 1, 1).unwrap();
    world.pass(secs(1));
    assert_eq!(world.hosts.in_flight("a"), CLIENTS as usize);
    world.nodes.get_mut("a").unwrap().stop();
    world.pass(secs(7));
    assert!(!world.nodes["a"].has_ended());
    world.until(secs(3), |world| world.nodes["a"].has_ended());
    assert_eq!(world.hosts.in_flight("a"), 0, "dropped: they are made again");
    assert!(world.ask(world.flare("a").cluster()).unwrap().nodes.is_empty());
}

#[test]
fn a_frozen_node_is_replaced_and_sends_nothing_that_is_not_its_own_when_it_wakes() {
    let mut world = cluster(&["a", "b", "c"], 7);
    world.hosts.take(secs(3));
    world.put("a", 1, 1).unwrap();
    world.pass(Duration::from_millis(500));
    world.freeze("b");
    for id in 2..6 {
        world.put("a", id, 2).unwrap();
    }
    let all = |world: &World| world.told(2).len() >= 4 * CLIENTS as usize;
    world.until(TTL + secs(8), all);
    world.thaw("b");
    world.pass(secs(2));
    assert!(!world.tellers(2).contains("b"), "whatever it had in mind");
    world.rest();
    world.put("a", 1, 3).unwrap();
    world.until(secs(5), all_told(3));
    assert!(world.tellers(3).contains("b"), "it has joined again");
}

#[test]
fn a_node_that_only_ingests_takes_documents_and_works_nothing() {
    let mut world = World::new(8);
    world.start_as("door", |_, cluster| cluster.roles = Roles::INGEST_ONLY);
    let users = world.users("door");
    world.subscribe("door", &users, CLIENTS);
    assert!(world.put("door", 1, 1).unwrap().notifies());
    world.pass(secs(60));
    let spreading = world.ask(world.repository().count_undispatched(None)).unwrap();
    assert_eq!((spreading, world.told(1).len()), (1, 0), "nobody works");
    assert_eq!(world.view("door").health, Health::Red);
    world.start_as("bench", |_, cluster| cluster.roles = Roles::WORKER_ONLY);
    world.until(secs(20), all_told(1));
    assert_eq!(world.tellers(1).into_iter().collect::<Vec<_>>(), ["bench"]);
    let refused = world.put("bench", 1, 2).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
}

#[test]
fn a_node_with_another_number_of_slots_works_nothing() {
    let mut world = cluster(&["a"], 9);
    world.start_as("b", |settings, _| settings.slots = Some(SLOTS + 1));
    world.pass(secs(30));
    world.put("b", 1, 1).unwrap();
    world.until(secs(5), all_told(1));
    world.pass(secs(30));
    assert_eq!(world.tellers(1).into_iter().collect::<Vec<_>>(), ["a"]);
    assert_eq!(world.nodes["b"].flare.node().lanes, 0);
    // Once nobody is left who works by the old number, there is a plan of the new one.
    world.nodes.get_mut("a").unwrap().stop();
    world.until(secs(40), |world| world.nodes["a"].has_ended());
    world.put("b", 1, 2).unwrap();
    world.until(secs(40), all_told(2));
    assert_eq!(world.tellers(2).into_iter().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_node_that_may_not_lead_works_and_takes_documents_with_a_leader_and_without() {
    let mut world = World::new(10);
    world.start_as("b", |_, cluster| cluster.roles = Roles::NOT_ELIGIBLE);
    world.pass(secs(30));
    assert_eq!((world.view("b").leader, world.view("b").health), (None, Health::Red));
    world.start("a");
    world.rest();
    let users = world.users("b");
    world.subscribe("b", &users, CLIENTS);
    world.put("b", 1, 1).unwrap();
    world.until(secs(5), all_told(1));
    assert_eq!(world.tellers(1).len(), 2);
    assert_eq!(world.view("b").leader, world.flare("a").member().node());
    // Without a leader nobody takes over what the other had, and it works on what it has.
    world.kill("a");
    world.pass(secs(30));
    assert_eq!((world.view("b").leader, world.view("b").health), (None, Health::Red));
    world.put("b", 1, 2).unwrap();
    world.pass(secs(10));
    let told = world.told(2).len();
    assert!(0 < told && told < CLIENTS as usize, "{told}");
    world.start("c");
    world.until(secs(30), all_told(2));
    assert_eq!(world.view("b").leader, world.flare("c").member().node());
}

fn record(world: &World, name: &str) -> NodeRecord {
    let mut records = world.view(name).nodes.into_iter().filter_map(|node| node.record);
    (*records.find(|record| record.name == name).unwrap()).clone()
}

#[test]
fn a_node_says_how_busy_it_is_and_gives_slots_away_while_it_is_too_much() {
    let mut world = World::new(13);
    world.start_as("small", |settings, _| {
        (settings.in_flight_limit, settings.young_limit) = (4, 4);
    });
    world.start("large");
    world.rest();
    let users = world.users("large");
    world.subscribe("large", &users, CLIENTS);
    world.pass(secs(30));
    let lanes = world.flare("small").node().lanes as u64;
    let idle = record(&world, "small");
    assert_eq!((idle.load.lanes, idle.load.busy_percent, idle.weight), (lanes, 0, 100));
    assert!(lanes > 4, "more than it may have in flight: {lanes}");

    let slots = |world: &World| {
        let view = world.view("large");
        let small = world.flare("small").member().node();
        view.nodes.iter().find(|node| Some(node.id) == small).map(|node| node.slots)
    };
    let before = slots(&world);
    world.hosts.take(secs(19));
    for revision in 1..=15 {
        world.put("large", 1, revision).unwrap();
        world.pass(secs(20));
    }
    let (small, large) = (record(&world, "small"), record(&world, "large"));
    assert!(small.weight < 100 && small.shed_percent > 0, "{small:?}");
    assert!(slots(&world) < before, "{:?} of {before:?}", slots(&world));
    assert_eq!((large.weight, large.shed_percent), (100, 0), "{large:?}");
    assert!(large.load.in_flight > 4 && large.load.busy_percent < 20, "{large:?}");
}

#[test]
fn every_node_answers_with_the_same_figures_within_a_second_of_the_last_request() {
    let world = World::of(&["a", "b", "c"], 13);
    let users = world.users("a");
    let clients = world.subscribe("a", &users, CLIENTS);
    world.pass(secs(2));
    for revision in 1..=20 {
        world.put("b", 1, revision).unwrap();
        world.pass(Duration::from_millis(150));
    }
    // Documents that changed again within the time of one round may be told once.
    world.pass(secs(1));
    let mut workers = std::collections::BTreeSet::new();
    for client in &clients {
        let status =
            |name: &str| world.ask(world.flare(name).subscription_status(client.id)).unwrap();
        let report = status("a");
        let told = world.hosts.told_to(client.id);
        assert_eq!((report.delivered, report.failed, report.in_flight), (told as u64, 0, 0));
        assert!(report.delivered > 0);
        assert_eq!((status("b"), status("c")), (report.clone(), report.clone()));
        workers.extend(report.node);
    }
    assert_eq!(workers.len(), 3, "each of them answers for lanes it does not work");
}

#[test]
fn flares_at_rest_write_nothing_to_what_they_agree_by_and_hardly_more_at_work() {
    let world = cluster(&["a", "b", "c"], 14);
    world.pass(secs(60));
    let before = world.coordination_writes();
    world.pass(secs(600));
    assert_eq!(world.coordination_writes(), before);
    // A change a second, which takes each client a part of it.
    world.hosts.take(Duration::from_millis(400));
    for revision in 1..=180 {
        world.put("a", 1, revision).unwrap();
        world.pass(secs(1));
    }
    world.until(secs(5), all_told(180));
    let written = world.coordination_writes() - before;
    assert!(written <= 9, "{written} writes of three nodes in three minutes");
}
