//! What the whole way costs on SQS, counted where requests leave for it: per delivery, while nothing
//! happens, and with many lanes on one node; and how soon a change arrives there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "it is a test, and says what it found"
)]

use std::sync::Arc;
use std::time::Duration;

use crate::support::Scratch;
use crate::support::world::{World, client, url};
use flare_backend_sqs::{SqsQueue, SqsRequests};
use flare_core::Settings;
use flare_core::model::Placement;
use flare_core::port::{Clock, Queue, QueueName, SystemClock};
use flare_testkit::Trials;
use futures::TryStreamExt;
use tokio::sync::Mutex;

/// Of 64 slots, and of two stages.
const QUEUES: u64 = 64 + 2;
/// Documents in a full put.
const FULL: usize = 100;
/// Puts whose requests are counted.
const ROUNDS: i64 = 5;
/// What a delivery may cost at most, on shared queues, to a hundred subscriptions, in full batches.
const DELIVERY_LIMIT: f64 = 0.35;
/// How long one waits for nothing to happen.
const IDLE: Duration = Duration::from_secs(40);
/// Changes of one document, one after the other.
const TRIES: i64 = 11;
/// What the middle one of them may take from the put to the client.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);

/// One trial at a time: they look at the memory of the process, and at the clock.
static TURN: Mutex<()> = Mutex::const_new(());

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("journey")
        .test("a_thousand_lanes_shared", |endpoint| many_lanes(endpoint, Placement::Shared, 1_000))
        .test("two_hundred_lanes_isolated", |it| many_lanes(it, Placement::Isolated, 200))
        .test("requests_per_delivery_shared", |it| costs(it, Placement::Shared, &[100, 10, 1]))
        .test("requests_per_delivery_isolated", |it| costs(it, Placement::Isolated, &[100]))
}

/// What runs by the clock is not a delivery's cost.
fn quiet(placement: Placement) -> Settings {
    let mut settings = usual(placement);
    let never = Duration::from_secs(3_600);
    settings.reconcile_every = never;
    settings.rederive_every = never;
    settings.sweep_every = never;
    settings.jobs_every = never;
    settings.sample_every = never;
    settings
}

fn usual(placement: Placement) -> Settings {
    let mut settings = Settings::default();
    settings.placement = placement;
    settings
}

async fn costs(endpoint: String, placement: Placement, subscriptions: &[usize]) {
    let _turn = TURN.lock().await;
    for &subscriptions in subscriptions {
        let world = Counted::start(&endpoint, quiet(placement), subscriptions).await;
        for documents in [FULL, 10, 1] {
            let per_delivery = world.per_delivery(subscriptions, documents).await;
            if placement == Placement::Shared && (subscriptions, documents) == (100, FULL) {
                assert!(per_delivery <= DELIVERY_LIMIT, "{per_delivery:.3} requests per delivery");
            }
        }
        world.world.stop().await;
    }
}

/// A world whose requests to SQS are counted, and somebody who looks on without being counted.
struct Counted {
    world: World,
    queue: Arc<SqsQueue>,
    watcher: SqsQueue,
    placement: Placement,
    _scratch: Scratch,
}

impl Counted {
    async fn start(endpoint: &str, settings: Settings, subscriptions: usize) -> Self {
        let scratch = Scratch::new(endpoint);
        let queue = Arc::new(SqsQueue::connect(scratch.config()).await.unwrap());
        let watcher = SqsQueue::connect(scratch.config()).await.unwrap();
        let placement = settings.placement;
        let world = World::start(Arc::clone(&queue) as Arc<dyn Queue>, settings);
        world.subscribe("items", subscriptions).await;
        Self { world, queue, watcher, placement, _scratch: scratch }
    }

    /// Requests for each delivery, when so many documents are put at a time.
    async fn per_delivery(&self, subscriptions: usize, documents: usize) -> f64 {
        let ids = documents * 1_000..documents * 1_001;
        // The first one makes the rows and warms everything up.
        self.world.put("items", ids.clone(), 1).await;
        self.quiet().await;
        let (before, told) = (self.queue.requests(), self.world.clients.total());
        for round in 1..=ROUNDS {
            self.world.put("items", ids.clone(), round + 1).await;
            self.quiet().await;
        }
        let spent = since(self.queue.requests(), before);
        let told = self.world.clients.total() - told;
        assert_eq!(told, ROUNDS as u64 * (documents * subscriptions) as u64);
        let per_delivery = spent.total() as f64 / told as f64;
        println!(
            "{}, S={subscriptions}, {documents} documents a put: {per_delivery:.4} requests per \
             delivery, {spent:?}",
            self.placement
        );
        per_delivery
    }

    /// Waits until everything is delivered and every message is settled.
    async fn quiet(&self) {
        self.world.settled().await;
        let queues: Vec<QueueName> = self.watcher.list().try_collect().await.unwrap();
        for queue in queues {
            loop {
                let depth = self.watcher.depth(&queue).await.unwrap();
                if depth.ready + depth.delayed + depth.in_flight == 0 {
                    break;
                }
            }
        }
    }
}

async fn many_lanes(endpoint: String, placement: Placement, lanes: usize) {
    let _turn = TURN.lock().await;
    let without = resident_mib();
    // One lane is apart from the others: what is told to it is told to nobody else.
    let counted = Counted::start(&endpoint, usual(placement), lanes - 1).await;
    let world = &counted.world;
    world.subscribe("lone", 1).await;
    let clock = SystemClock::new();
    world.put("items", 0..1, 1).await;
    world.put("lone", 0..1, 1).await;
    counted.quiet().await;

    let (before, began) = (counted.queue.requests(), clock.monotonic());
    clock.sleep_until(clock.now() + IDLE).await;
    let spent = since(counted.queue.requests(), before);
    let seconds = (clock.monotonic() - began).as_secs_f64();
    println!(
        "{placement}, {lanes} lanes: {} MiB resident ({without} MiB before there was a Flare); \
         idle {:.2} requests/s, {spent:?} in {seconds:.0} s",
        resident_mib(),
        spent.total() as f64 / seconds,
    );
    let queues = match placement {
        Placement::Isolated => QUEUES + lanes as u64,
        _ => QUEUES,
    };
    // Each is asked again when its twenty seconds are over, and now and then one is counted.
    let (polls, counts) = (queues * (IDLE.as_secs() / 20 + 1), IDLE.as_secs() / 5 * 2);
    assert!(spent.total() <= polls + counts, "{spent:?}, {polls} polls of {queues} queues");

    let mut times = Vec::new();
    for rev in 2..2 + TRIES {
        let began = clock.monotonic();
        world.put("lone", 0..1, rev).await;
        let (client, url) = (client("lone", 0), url("lone", 0));
        let has_it = |it: &crate::support::world::Clients| it.revision(&client, &url) == Some(rev);
        world.clients.until("the change of one document arrives", has_it).await;
        times.push(clock.monotonic() - began);
    }
    times.sort_unstable();
    let (middle, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let began = clock.monotonic();
    world.put("items", 0..1, 2).await;
    world.settled().await;
    println!(
        "{placement}, {lanes} lanes: a change for one arrives after {middle:?} (median of {TRIES}, \
         worst {worst:?}); one for the {} others is settled after {:?}",
        lanes - 1,
        clock.monotonic() - began,
    );
    assert!(middle <= ARRIVES_WITHIN, "{times:?}");
    counted.world.stop().await;
}

fn since(now: SqsRequests, before: SqsRequests) -> SqsRequests {
    let mut spent = now;
    spent.send -= before.send;
    spent.receive -= before.receive;
    spent.delete -= before.delete;
    spent.change -= before.change;
    spent.other -= before.other;
    spent
}

/// Memory of this process that is in RAM (Linux).
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1_024
}
