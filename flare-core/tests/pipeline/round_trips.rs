//! What changes cost in calls of the repository, each of which is a round trip on a real store:
//! counted from the put to the stored outcome, on stores that answer at once and on slow ones.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::support::{World, few_slots, in_memory, url};
use flare_core::internals::Shortcuts;
use flare_core::model::{DocumentChange, NewResource};
use flare_core::port::{
    Clock, Repository, RepositoryFacts, SpreadAnswer, SpreadDocuments, spread_in_steps,
};
use flare_core::{Result, Settings};
use flare_testkit::intercept::{self, Hooks, RepositoryHooks};
use flare_testkit::{CountingRepository, Tally};

const DOCUMENTS: u64 = 100;
const LONG: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What happens by the clock alone is not what changes cost.
fn without_rounds() -> Settings {
    let mut settings = few_slots();
    settings.reconcile_every = LONG;
    settings.rederive_every = LONG;
    settings.sweep_every = LONG;
    settings.jobs_every = LONG;
    settings.expire_every = LONG;
    settings.sample_every = LONG;
    settings
}

/// A world whose repository is counted, each of its calls taking `slow`.
fn counted(slow: Duration, max_batch: usize) -> (World, CountingRepository) {
    counted_under(without_rounds(), slow, max_batch)
}

fn counted_under(
    settings: Settings,
    slow: Duration,
    max_batch: usize,
) -> (World, CountingRepository) {
    let mut counting = None;
    let world = in_memory(settings).behind(|repository, clock| {
        let counted = CountingRepository::new(repository).slowed(slow, clock).taking(max_batch);
        counting.insert(counted).clone()
    });
    (world, counting.unwrap())
}

/// A store that cannot spread in one write, as MongoDB: it takes the steps that there are for such.
#[derive(Debug)]
struct InSteps;

impl Hooks for InSteps {}

#[async_trait]
impl RepositoryHooks for InSteps {
    fn facts(&self, inner: &dyn Repository) -> RepositoryFacts {
        let mut facts = inner.facts();
        facts.spreads_at_once = false;
        facts
    }

    async fn spread_documents(
        &self,
        inner: &dyn Repository,
        request: SpreadDocuments,
    ) -> Result<SpreadAnswer> {
        spread_in_steps(inner, request).await
    }
}

async fn subscribe(world: &World, subscriptions: u64) {
    let users = world.users().await;
    for number in 0..subscriptions {
        world.subscribe(&users, &format!("client{number}")).await;
    }
}

async fn put_all(world: &World, revision: u64) {
    let json = format!(r#"{{"rev":{revision}}}"#);
    let documents = (0..DOCUMENTS).map(|id| (url(id), json.clone()));
    for answer in world.in_time(world.flare.put_documents(documents)).await {
        assert!(matches!(answer.unwrap(), DocumentChange::Created | DocumentChange::Updated));
    }
}

/// What is tried: a store that takes this long for each call, and clients of which each takes
/// between these times to answer.
#[derive(Debug, Clone)]
struct Trial {
    subscriptions: u64,
    store: Duration,
    clients: Range<Duration>,
    rounds: u64,
    max_batch: usize,
}

impl Trial {
    /// Stores and clients that answer at once.
    fn of(subscriptions: u64) -> Self {
        let clients = Duration::ZERO..Duration::ZERO;
        let rounds = 10 / subscriptions.min(5);
        Self { subscriptions, store: Duration::ZERO, clients, rounds, max_batch: 1_000 }
    }

    /// Puts batches of documents, each when the last is delivered; gives what they cost.
    async fn run(&self) -> Cost {
        let (mut world, counting) = counted(self.store, self.max_batch);
        let (random, clients) = (Mutex::new(fastrand::Rng::with_seed(1)), self.clients.clone());
        world.delivery = world.delivery.clone().taking(move |_| {
            let part = random.lock().unwrap().f64();
            clients.start + (clients.end - clients.start).mul_f64(part)
        });
        subscribe(&world, self.subscriptions).await;
        world.start();
        put_all(&world, 1).await;
        world.settled().await;
        counting.take();
        let before = world.delivery.total();
        for round in 0..self.rounds {
            put_all(&world, 2 + round).await;
            world.settled().await;
        }
        let deliveries = world.delivery.total() - before;
        assert_eq!(deliveries, DOCUMENTS * self.rounds * self.subscriptions);
        Cost { calls: counting.take(), deliveries }
    }

    /// At most this many calls per delivery, and none about more than the store takes at a time.
    async fn costs_at_most(&self, limit: f64) {
        let Cost { calls, deliveries } = self.run().await;
        let each = calls.total() as f64 / deliveries as f64;
        eprintln!("{self:?}: {each:.3} calls for each of {deliveries} deliveries\n{calls}\n");
        assert!(each <= limit, "{each:.3} calls for each delivery, {limit} are allowed");
        // A scan is no batch: a store reads it in as many parts as it likes.
        for (name, calls) in calls.iter().filter(|(name, _)| *name != "pending_rows") {
            assert!(calls.most <= self.max_batch, "{name} about {} at once", calls.most);
        }
    }
}

struct Cost {
    calls: Tally,
    deliveries: u64,
}

#[tokio::test]
async fn a_batch_costs_little_for_each_delivery() {
    for subscriptions in [1, 10] {
        Trial::of(subscriptions).costs_at_most(0.125).await;
    }
}

#[tokio::test]
async fn a_slow_store_is_asked_no_more_often() {
    for (subscriptions, store) in [(1, 1), (10, 1), (1, 5), (10, 5)] {
        let store = Duration::from_millis(store);
        Trial { store, ..Trial::of(subscriptions) }.costs_at_most(0.12).await;
    }
}

#[tokio::test]
async fn answers_that_come_one_by_one_are_stored_together() {
    for (subscriptions, store) in [(1, 0), (10, 0), (1, 2), (10, 2)] {
        let store = Duration::from_millis(store);
        for longest in [3, 20] {
            let clients = Duration::from_millis(1)..Duration::from_millis(longest);
            Trial { store, clients, ..Trial::of(subscriptions) }.costs_at_most(0.15).await;
        }
    }
}

#[tokio::test]
async fn many_lanes_store_together() {
    let clients = Duration::from_millis(1)..Duration::from_millis(20);
    let store = Duration::from_millis(2);
    Trial { store, clients, rounds: 1, ..Trial::of(100) }.costs_at_most(0.2).await;
}

#[tokio::test]
async fn no_batch_is_larger_than_the_store_takes() {
    let store = Duration::from_millis(2);
    Trial { store, max_batch: 7, ..Trial::of(10) }.costs_at_most(2.0).await;
}

#[tokio::test]
async fn one_answer_is_stored_at_once_though_others_are_awaited() {
    let (mut world, counting) = counted(Duration::ZERO, 1_000);
    let users = world.users().await;
    let client = world.subscribe(&users, "client").await;
    world.delivery.hang("http://client.example/1");
    world.start();
    world.put(1, 1).await;
    world.until("asked", async || world.delivery.in_flight() == 1).await;
    counting.take();
    world.put(2, 1).await;
    world.pass(Duration::ZERO).await;
    assert!(!world.row(client.id, 2).await.unwrap().is_pending(), "{}", counting.take());
}

/// Rows that are busy are passed over, and here nobody looks for them later by the clock.
#[tokio::test]
async fn what_changes_again_at_any_moment_is_told_without_another_wake_up() {
    for store in [0, 1, 5].map(Duration::from_millis) {
        let (mut world, counting) = counted(store, 1_000);
        let random = Mutex::new(fastrand::Rng::with_seed(7));
        world.delivery = world
            .delivery
            .clone()
            .taking(move |_| Duration::from_millis(random.lock().unwrap().u64(0..20)));
        subscribe(&world, 2).await;
        world.start();
        for pause in 0..120 {
            for later in [1, 2] {
                world.in_time(world.put(1, pause * 2 + later)).await;
                world.pass(Duration::from_micros(pause as u64 * 250)).await;
            }
            let before = world.clock.now();
            world.settled().await;
            let took = world.clock.now() - before;
            assert!(took <= Duration::from_secs(1), "{took:?}\n{}", counting.tally());
        }
    }
}

#[tokio::test]
async fn a_single_put_costs_two_calls() {
    let (world, counting) = counted(Duration::ZERO, 1_000);
    subscribe(&world, 1).await;
    for (id, revision) in [(1, 1), (1, 2), (2, 1)] {
        world.put(id, revision).await;
        let calls = counting.take();
        assert!(calls.total() <= 2, "{calls}");
    }
}

/// What single puts cost, each of which is delivered before the next.
#[derive(Debug)]
struct SinglePut {
    /// Calls from the put to the stored outcome, on average.
    all: f64,
    /// Those of them that stored a lane's state, which it does once a second whatever is put.
    states: f64,
    /// The most calls of any of them until the last of its requests left, beside the put's own: those that
    /// match and write the document, after which it returns.
    on_the_way: u64,
}

impl SinglePut {
    const PUTS: u64 = 10;

    async fn cost(shortcuts: Shortcuts, subscriptions: u64) -> Self {
        let (world, counting) = counted_under(short(shortcuts), Duration::ZERO, 1_000);
        Self::of(world, &counting, subscriptions).await
    }

    /// Puts into a world whose store is counted.
    async fn of(mut world: World, counting: &CountingRepository, subscriptions: u64) -> Self {
        let (left, counts) = (Arc::new(AtomicU64::new(0)), counting.clone());
        let most = Arc::clone(&left);
        world.delivery = world.delivery.clone().taking(move |_| {
            most.fetch_max(on_the_way(&counts.tally()), Ordering::Relaxed);
            Duration::ZERO
        });
        subscribe(&world, subscriptions).await;
        world.start();
        world.put(1, 1).await;
        world.settled().await;
        world.pass(Duration::from_secs(2)).await;
        left.store(0, Ordering::Relaxed);
        let (mut all, mut states, before) = (0, 0, world.delivery.total());
        for revision in 2..2 + Self::PUTS {
            counting.take();
            world.put(1, revision as i64).await;
            world.settled().await;
            let calls = counting.take();
            all += calls.total();
            states += calls.of("store_lanes").calls;
            eprintln!("{subscriptions} subscriptions, put {revision}\n{calls}\n");
        }
        assert_eq!(world.delivery.total() - before, Self::PUTS * subscriptions);
        let [all, states] = [all, states].map(|calls| calls as f64 / Self::PUTS as f64);
        Self { all, states, on_the_way: left.load(Ordering::Relaxed) }
    }

    fn is_at_most(&self, all: f64, on_the_way: u64) {
        assert!(self.all <= all && self.on_the_way <= on_the_way, "{self:?}");
    }
}

fn short(shortcuts: Shortcuts) -> Settings {
    let mut settings = without_rounds();
    settings.shortcuts = shortcuts;
    settings
}

/// Calls between a put that returned and its request. What a lane notes of the client once a second is on
/// nobody's way.
fn on_the_way(calls: &Tally) -> u64 {
    let others = ["match_resources", "write_documents", "store_lanes"];
    calls.total() - others.into_iter().map(|name| calls.of(name).calls).sum::<u64>()
}

#[tokio::test]
async fn a_single_put_is_delivered_by_few_calls() {
    // Matched, written, spread, told, stored; and now and then a lane's state.
    SinglePut::cost(Shortcuts::new(true), 1).await.is_at_most(5.0, 2);
    // Ten clients: what is read for one is read for all, and outcomes are stored as they come.
    SinglePut::cost(Shortcuts::new(true), 10).await.is_at_most(16.0, 2);
}

/// Dispatched is then a call of its own, beside the request.
#[tokio::test]
async fn a_store_that_spreads_in_steps_is_called_once_more_for_a_single_put() {
    for subscriptions in [1, 10] {
        let mut counting = None;
        let world = in_memory(short(Shortcuts::new(true))).behind(|repository, _| {
            let in_steps = Arc::new(intercept::repository(repository, InSteps));
            counting.insert(CountingRepository::new(in_steps)).clone()
        });
        let cost = SinglePut::of(world, &counting.unwrap(), subscriptions).await;
        // Matched, written, spread, dispatched, and stored as each client answers.
        let each = 4.0 + subscriptions as f64;
        assert!(cost.all - cost.states <= each && cost.on_the_way <= 3, "{cost:?}");
    }
}

#[tokio::test]
async fn without_shortcuts_a_single_put_is_delivered_all_the_same() {
    let mut spread_alone = Shortcuts::new(false);
    spread_alone.spread_at_once = true;
    for (shortcuts, most) in [(Shortcuts::new(false), 11.0), (spread_alone, 8.0)] {
        SinglePut::cost(shortcuts, 1).await.is_at_most(most, u64::MAX);
    }
}

/// Only where more than one resource matches is it asked where a document is.
#[tokio::test]
async fn overlapping_resources_cost_one_call_more_and_a_move_two() {
    let (world, counting) = counted(Duration::ZERO, 1_000);
    let wide = NewResource::new("http://api.example/{kind}/{id}").change_field("rev");
    world.calm.create_resource(wide).await.unwrap();
    let documents = || (0..DOCUMENTS).map(|id| (url(id), r#"{"rev":1}"#));
    for put in world.flare.put_documents(documents()).await {
        assert_eq!(put.unwrap(), DocumentChange::Created);
    }
    assert_eq!(counting.take().total(), 2);
    world.users().await;
    let cost = async |expected: u64| {
        let calls = counting.take();
        assert_eq!(calls.total(), expected, "{calls}");
    };
    counting.take();
    world.flare.document(&url(1)).await.unwrap();
    cost(2).await;
    for put in world.flare.put_documents(documents()).await {
        assert_eq!(put.unwrap(), DocumentChange::Created);
    }
    // Matched, looked up, written, and gone where they were.
    cost(4).await;
    world.put(1, 2).await;
    // Its move is under way as long as nobody has spread it.
    cost(4).await;
    world.put("new", 1).await;
    cost(3).await;
    world.put("new", 2).await;
    cost(3).await;
    world.delete("new").await;
    cost(3).await;
}

#[tokio::test]
async fn the_counters_of_a_lane_are_stored_at_most_once_a_second_and_soon() {
    const PUTS: u64 = 200;
    let (mut world, counting) = counted(Duration::ZERO, 1_000);
    let users = world.users().await;
    let client = world.subscribe(&users, "client").await;
    world.start();
    world.put(1, 1).await;
    world.settled().await;
    world.pass(Duration::from_secs(2)).await;
    counting.take();
    let started = world.clock.now();
    for revision in 2..2 + PUTS {
        world.put(1, revision as i64).await;
        world.pass(Duration::from_millis(50)).await;
    }
    world.pass(Duration::from_secs(1)).await;
    let (calls, seconds) = (counting.take(), (world.clock.now() - started).as_secs());
    let stored = |name: &str| calls.iter().find(|(it, _)| *it == name).unwrap().1.calls;
    assert!(stored("apply_rows") >= PUTS / 2, "{calls}");
    assert!((2..=seconds + 1).contains(&stored("store_lanes")), "{seconds} s\n{calls}");
    let report = world.calm.subscription_status(client.id).await.unwrap();
    assert_eq!(report.delivered, world.delivery.total(), "told by another handle");
    assert_eq!((report.failed, report.in_flight), (0, 0));
}

#[tokio::test]
async fn lanes_that_begin_together_read_what_was_remembered_of_them_once() {
    let (mut world, counting) = counted(Duration::from_millis(1), 1_000);
    let users = world.users().await;
    let many = crate::support::hook("client").concurrency(64).lanes(64);
    let client = world.calm.create_subscription(users.id, many).await.unwrap();
    world.start();
    world.until("64 lanes", async || world.flare.node().lanes == 64).await;
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(counting.take().of("lanes").calls, 1);
    // Each time anew, for meanwhile they may have remembered something else.
    world.calm.pause(client.id).await.unwrap();
    world.until("no lanes", async || world.flare.node().lanes == 0).await;
    world.calm.resume(client.id).await.unwrap();
    world.until("64 lanes", async || world.flare.node().lanes == 64).await;
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(counting.take().of("lanes").calls, 1);
}
