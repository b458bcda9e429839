//! What coordination costs the store.

use std::sync::atomic::Ordering;

use flare_core::cluster::NodeLoad;

use crate::world::{World, secs};

fn writes(world: &World) -> u64 {
    world.calls.writes.load(Ordering::Relaxed)
}

/// A cluster of three nodes at rest, and how many writes that took.
async fn cluster(slots: u32) -> (World, u64) {
    let mut world = World::new(slots, 31);
    ["a", "b", "c"].into_iter().for_each(|name| world.start(name));
    world.rest(secs(60)).await;
    world.pass(secs(40)).await;
    world.rest(secs(60)).await;
    let writes = writes(&world);
    (world, writes)
}

#[tokio::test]
async fn nothing_is_written_while_nothing_changes_but_keep_alives() {
    let (mut world, before) = cluster(1_024).await;
    let keep_alives = world.calls.keep_alives.load(Ordering::Relaxed);
    let reads = world.calls.reads.load(Ordering::Relaxed);
    world.pass(secs(600)).await;
    assert_eq!(writes(&world), before);
    // Trusted time is 7.5 s, a beat comes after a third of what is left of it.
    let beats = world.calls.keep_alives.load(Ordering::Relaxed) - keep_alives;
    assert!((3 * 200..=3 * 260).contains(&beats), "{beats} beats of three nodes in ten minutes");
    let reads = world.calls.reads.load(Ordering::Relaxed) - reads;
    assert!(reads <= beats + 3 * 25, "{reads} reads: one per beat, and a sweep now and then");
}

#[tokio::test]
async fn writes_follow_nodes_and_rounds_and_not_the_number_of_slots() {
    let (_, few) = cluster(64).await;
    let (_, many) = cluster(2_048).await;
    assert!(many.abs_diff(few) <= 6, "{few} writes with 64 slots, {many} with 2048");
    assert!(many <= 60, "{many}");
}

#[tokio::test]
async fn load_is_published_rounded_and_seldom() {
    let (mut world, before) = cluster(64).await;
    for second in 0..60 {
        world.node("a").handle.set_load(NodeLoad::new(1_000 + second, 100 + second / 2, 50));
        world.pass(secs(1)).await;
    }
    let written = writes(&world) - before;
    assert!((1..=2).contains(&written), "{written} writes for figures that hardly changed");
    for second in 0..60 {
        world.node("a").handle.set_load(NodeLoad::new(second * 1_000, second, 50));
        world.pass(secs(1)).await;
    }
    let written = writes(&world) - before - written;
    assert!((3..=7).contains(&written), "{written} writes in a minute, at most one in ten seconds");
    let before = writes(&world);
    for second in 0..60 {
        world.node("a").handle.set_load(NodeLoad::new(10, 10, 50).consumers(1_000 + second));
        world.pass(secs(1)).await;
    }
    let written = writes(&world) - before;
    assert!((3..=7).contains(&written), "{written} writes for as many consumers as there are");
}
