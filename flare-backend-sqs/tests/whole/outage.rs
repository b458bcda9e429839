//! Queues are deleted and emptied under load, and the server is ended and begins again with nothing:
//! nothing that was accepted is lost, nothing goes backwards, and Flare goes on by itself.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "it is a test, and says what it found"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::Scratch;
use crate::support::own_server::OwnServer;
use crate::support::world::{World, body, client, url};
use aws_sdk_sqs::Client;
use flare_backend_sqs::SqsQueue;
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::Placement;
use flare_core::port::{Clock, Queue, QueueName, SystemClock};
use flare_testkit::Trials;
use futures::TryStreamExt;

const ROUNDS: usize = 3;
const SUBSCRIPTIONS: usize = 6;
const DOCUMENTS: usize = 40;
const WRITERS: usize = 4;
/// How long a writer thinks between two puts.
const PACE: Duration = Duration::from_millis(20);
const KIND: &str = "items";

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("outage")
        .test("flare_goes_on_whatever_becomes_of_shared_queues", |_| outage(Placement::Shared))
        .test("flare_goes_on_whatever_becomes_of_isolated_queues", |_| outage(Placement::Isolated))
}

async fn outage(placement: Placement) {
    let server = OwnServer::start(&format!("flare-sqs-outage-{placement}")).await;
    let scratch = Scratch::new(&server.endpoint);
    let config = || scratch.config().timeout(Duration::from_secs(10));
    let queue = Arc::new(SqsQueue::connect(config()).await.unwrap());
    // Somebody else, who does what they like.
    let vandal = Vandal {
        queue: SqsQueue::connect(config()).await.unwrap(),
        raw: crate::support::raw(&server.endpoint),
    };
    let mut settings = Settings::default();
    settings.slots = Some(4);
    settings.placement = placement;
    let world = World::start(queue, settings);
    world.subscribe(KIND, SUBSCRIPTIONS).await;
    let accepted = Arc::new(Accepted::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(world.flare.clone(), Arc::clone(&accepted), writer)))
        .collect();
    let report = Report { world: &world, accepted: &accepted, placement };
    for round in 1..=ROUNDS {
        accepted.more(100).await;
        vandal.delete_all(|it| matches!(it, QueueName::Slot(_) | QueueName::Lane(_))).await;
        report.recovered(&format!("round {round}, lanes' queues deleted")).await;
        vandal.delete_all(|it| matches!(it, QueueName::Partition)).await;
        report.recovered(&format!("round {round}, partition queue deleted")).await;
        vandal.delete_all(|_| true).await;
        report.recovered(&format!("round {round}, all queues deleted")).await;
        vandal.purge_all(&scratch.prefix).await;
        report.recovered(&format!("round {round}, all queues purged")).await;
        server.end().await;
        accepted.more(4).await;
        server.begin_empty().await;
        report.recovered(&format!("round {round}, server restarted empty")).await;
    }
    accepted.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    // Nobody puts anything any more that would wake a lane by the way.
    vandal.purge_all(&scratch.prefix).await;
    report.recovered("no more puts, all queues purged").await;
    world.settled().await;
    check(&world, &accepted).await;
    world.stop().await;
}

/// Deletes and empties queues behind Flare's back.
struct Vandal {
    queue: SqsQueue,
    raw: Client,
}

impl Vandal {
    async fn delete_all(&self, which: impl Fn(&QueueName) -> bool) {
        let all: Vec<QueueName> = self.queue.list().try_collect().await.unwrap();
        let chosen: Vec<&QueueName> = all.iter().filter(|it| which(it)).collect();
        assert!(!chosen.is_empty(), "there is something to delete among {all:?}");
        for queue in chosen {
            self.queue.delete(queue).await.unwrap();
        }
    }

    async fn purge_all(&self, prefix: &str) {
        let listed = self.raw.list_queues().queue_name_prefix(prefix).send().await.unwrap();
        let urls = listed.queue_urls.unwrap();
        for url in urls {
            self.raw.purge_queue().queue_url(url).send().await.unwrap();
        }
    }
}

/// The newest revision of each document whose put was answered.
#[derive(Default)]
struct Accepted {
    newest: Mutex<BTreeMap<usize, i64>>,
    count: AtomicU64,
    longest: Mutex<Duration>,
    stop: AtomicBool,
}

impl Accepted {
    fn newest(&self) -> BTreeMap<usize, i64> {
        self.newest.lock().unwrap().clone()
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn note(&self, id: usize, rev: i64, took: Duration) {
        self.newest.lock().unwrap().insert(id, rev);
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut longest = self.longest.lock().unwrap();
        *longest = took.max(*longest);
    }

    /// Waits until so many further puts have been accepted.
    async fn more(&self, puts: u64) {
        let clock = SystemClock::new();
        let (goal, deadline) = (self.count() + puts, clock.now() + Duration::from_secs(120));
        while self.count() < goal {
            assert!(clock.now() < deadline, "puts are accepted whatever becomes of the queues");
            clock.sleep_until(clock.now() + Duration::from_millis(10)).await;
        }
    }
}

/// Puts ever newer revisions of some of the documents.
async fn write(flare: Flare, accepted: Arc<Accepted>, writer: usize) {
    let clock = SystemClock::new();
    for rev in 1_i64.. {
        for id in (writer..DOCUMENTS).step_by(WRITERS) {
            if accepted.stop.load(Ordering::Relaxed) {
                return;
            }
            let began = clock.monotonic();
            // Stored is accepted, whether or not a queue is there to say so.
            flare.put_json(&url(KIND, id), body(rev)).await.unwrap();
            let took = clock.monotonic() - began;
            accepted.note(id, rev, took);
            clock.sleep_until(clock.now() + PACE).await;
        }
    }
}

struct Report<'a> {
    world: &'a World,
    accepted: &'a Accepted,
    placement: Placement,
}

impl Report<'_> {
    /// Waits until every client has all that was accepted by now; says how long that took.
    async fn recovered(&self, what: &str) {
        let clock = SystemClock::new();
        let (began, goal) = (clock.monotonic(), self.accepted.newest());
        let has_all = |clients: &crate::support::world::Clients| {
            let has =
                |number: usize, id: usize| clients.revision(&client(KIND, number), &url(KIND, id));
            (0..SUBSCRIPTIONS)
                .all(|number| goal.iter().all(|(id, rev)| has(number, *id) >= Some(*rev)))
        };
        self.world.clients.until(what, has_all).await;
        let took = clock.monotonic() - began;
        let longest = std::mem::take(&mut *self.accepted.longest.lock().unwrap());
        println!(
            "{}, {what}: {:.1} s until everybody had all of it; {} puts so far, the longest since took \
             {:.1} s",
            self.placement,
            took.as_secs_f64(),
            self.accepted.count(),
            longest.as_secs_f64(),
        );
    }
}

async fn check(world: &World, accepted: &Accepted) {
    let newest = accepted.newest();
    assert_eq!(newest.len(), DOCUMENTS);
    for (id, rev) in newest {
        let stored = world.flare.document(&url(KIND, id)).await.unwrap().version.revision().get();
        assert_eq!(stored, rev, "document {id} is stored as it was accepted");
        for number in 0..SUBSCRIPTIONS {
            let told = world.clients.revision(&client(KIND, number), &url(KIND, id));
            assert_eq!(told, Some(rev), "document {id} at client {number}");
        }
    }
    assert_eq!(world.clients.backwards(), Vec::<String>::new());
    let (total, repeated) = (world.clients.total(), world.clients.repeated());
    println!("{total} requests to clients, {repeated} of them repeated");
}
