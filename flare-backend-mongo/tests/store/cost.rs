//! What a put and a delivery cost in round trips, counted where they leave for the server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "it is a test, and says what it found"
)]

use std::sync::Arc;
use std::time::Duration;

use crate::support::Scratch;
use crate::support::world::{World, body, items, put, subscribe, url};
use flare_backend_memory::MemoryBackend;
use flare_backend_mongo::{Commands, MongoRepository};
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::DocumentChange;
use flare_core::port::{Clock, DocumentStore, RowStore, SystemClock};
use flare_testkit::{RecordingDelivery, Trials};

/// Rounds of puts after which the figures are taken.
const ROUNDS: u64 = 5;
/// Documents per put.
const BATCH: usize = 100;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("cost")
        .test("a_single_put_costs_two_round_trips", a_single_put)
        .test("a_delivery_costs_a_fifth_of_a_round_trip_s1", |uri| batches(uri, 1))
        .test("a_delivery_costs_a_fifth_of_a_round_trip_s10", |uri| batches(uri, 10))
}

/// What runs by the clock is not a delivery's cost.
fn quiet() -> Settings {
    let mut settings = Settings::default();
    let never = Duration::from_secs(3600);
    settings.slots = Some(4);
    settings.reconcile_every = never;
    settings.rederive_every = never;
    settings.sweep_every = never;
    settings.jobs_every = never;
    settings.sample_every = never;
    // Nor is the log of what was done, which is written behind the calls.
    settings.audit_limit = 0;
    settings
}

async fn repository(scratch: &Scratch) -> (Arc<MongoRepository>, Commands) {
    let commands = Commands::new();
    let config = scratch.config().commands(&commands);
    (Arc::new(MongoRepository::connect(config).await.unwrap()), commands)
}

async fn a_single_put(uri: String) {
    let scratch = Scratch::new(&uri);
    let (repository, commands) = repository(&scratch).await;
    // Only the put: nothing runs behind it.
    let (flare, _runtime) = Flare::builder(MemoryBackend::new())
        .repository(repository)
        .settings(quiet())
        .exclusive()
        .delivery(Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new()))))
        .build()
        .unwrap();
    items(&flare).await;
    for (rev, expected) in [
        (1, DocumentChange::Created),
        (2, DocumentChange::Updated),
        (2, DocumentChange::Unchanged),
        (1, DocumentChange::Stale),
    ] {
        let (before, names) = (commands.total(), commands.by_name());
        assert_eq!(put(&flare, 1, rev).await.unwrap(), expected);
        let cost = commands.total() - before;
        let all = (names, commands.by_name());
        assert!(cost <= 2, "a put that was {expected:?} took {cost} round trips: {all:?}");
    }
}

async fn batches(uri: String, subscriptions: usize) {
    let scratch = Scratch::new(&uri);
    let (repository, commands) = repository(&scratch).await;
    // Looks on without being counted.
    let watcher = MongoRepository::connect(scratch.config()).await.unwrap();
    let (queue, lease) = (MemoryBackend::new().queue(), MemoryBackend::new().lease());
    let world = World::start(flare_core::Backend::new(repository, queue, lease), quiet());
    let resource = items(&world.flare).await;
    for number in 0..subscriptions {
        subscribe(&world.flare, &resource, number).await;
    }
    // The first round makes the rows and warms everything up.
    let per_round = (BATCH * subscriptions) as u64;
    put_all(&world, 1).await;
    world.delivered(per_round).await;
    idle(&watcher).await;
    let before = commands.by_name();
    let total = commands.total();
    for round in 1..=ROUNDS {
        put_all(&world, round + 1).await;
        world.delivered(per_round * (round + 1)).await;
        idle(&watcher).await;
    }
    let spent = commands.total() - total;
    let per_delivery = spent as f64 / (per_round * ROUNDS) as f64;
    let mut table = commands.by_name();
    table.iter_mut().for_each(|(name, count)| *count -= before.get(name).unwrap_or(&0));
    println!("S={subscriptions}: {per_delivery:.3} round trips per delivery: {table:?}");
    assert!(per_delivery <= 0.2, "S={subscriptions}: {per_delivery:.3} per delivery: {table:?}");
    world.stop().await;
}

async fn put_all(world: &World, rev: u64) {
    let documents = (0..BATCH).map(|id| (url(id), body(rev)));
    for answer in world.flare.put_documents(documents).await {
        assert!(answer.unwrap().notifies());
    }
}

/// Waits until everything is spread and settled.
async fn idle(watcher: &MongoRepository) {
    let clock = SystemClock::new();
    let deadline = clock.now() + Duration::from_secs(60);
    loop {
        let spreading = watcher.count_undispatched(None).await.unwrap();
        let pending = watcher.count_pending(None).await.unwrap().count;
        if (spreading, pending) == (0, 0) {
            return;
        }
        assert!(clock.now() < deadline, "{spreading} spreading, {pending} pending");
        clock.sleep_until(clock.now() + Duration::from_millis(20)).await;
    }
}
