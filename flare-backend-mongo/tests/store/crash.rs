//! The server is killed under load, again and again: nothing that was accepted is lost, nothing goes
//! backwards, and Flare goes on by itself.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "it is a test, and says what it found"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::own_server::OwnServer;
use crate::support::world::{World, items, put, subscribe, url};
use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::DocumentUrl;
use flare_core::port::{Clock, DocumentStore, SystemClock};
use flare_testkit::Trials;

const CRASHES: usize = 10;
const DOCUMENTS: usize = 40;
const WRITERS: usize = 4;
const SUBSCRIPTIONS: usize = 3;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("crash").test("nothing_accepted_is_lost_in_crashes", crashes)
}

async fn crashes(_shared: String) {
    let server = OwnServer::start("flare-crash").await;
    let config = MongoConfig::new(&server.uri).create_missing().timeout(Duration::from_secs(20));
    let backend = MongoBackend::connect(config).await.unwrap();
    let mut settings = Settings::default();
    settings.slots = Some(4);
    let world = World::start(backend.clone(), settings);
    let resource = items(&world.flare).await;
    for number in 0..SUBSCRIPTIONS {
        subscribe(&world.flare, &resource, number).await;
    }
    let accepted = Arc::new(Accepted::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(world.flare.clone(), Arc::clone(&accepted), writer)))
        .collect();
    for crash in 1..=CRASHES {
        // Work is going on before, and goes on after.
        accepted.more(50).await;
        let (before, delivered) = (accepted.count(), world.delivery.total());
        server.kill().await;
        server.revive().await;
        accepted.more(50).await;
        println!(
            "crash {crash}: {before} puts accepted before, {} after; {delivered} requests before, \
             {} after; {} puts failed so far",
            accepted.count(),
            world.delivery.total(),
            accepted.failures.load(Ordering::Relaxed),
        );
    }
    accepted.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    world.flare.settled(Duration::from_secs(120)).await.unwrap();
    check(&world, &backend, &accepted, resource.id).await;
    world.stop().await;
}

/// The newest revision of each document whose put was answered.
#[derive(Default)]
struct Accepted {
    newest: Mutex<BTreeMap<usize, u64>>,
    count: AtomicU64,
    failures: AtomicU64,
    stop: AtomicBool,
}

impl Accepted {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until so many further puts have been accepted.
    async fn more(&self, puts: u64) {
        let clock = SystemClock::new();
        let (goal, deadline) = (self.count() + puts, clock.now() + Duration::from_secs(120));
        while self.count() < goal {
            assert!(clock.now() < deadline, "puts are accepted again after a crash");
            clock.sleep_until(clock.now() + Duration::from_millis(20)).await;
        }
    }
}

/// Puts ever newer revisions of some of the documents, each until it is accepted.
async fn write(flare: Flare, accepted: Arc<Accepted>, writer: usize) {
    let clock = SystemClock::new();
    for rev in 1_u64.. {
        for id in (writer..DOCUMENTS).step_by(WRITERS) {
            loop {
                if accepted.stop.load(Ordering::Relaxed) {
                    return;
                }
                match put(&flare, id, rev).await {
                    Ok(_) => break,
                    Err(error) => {
                        assert!(error.is_temporary(), "a crash is no lasting fault: {error:?}");
                        accepted.failures.fetch_add(1, Ordering::Relaxed);
                        clock.sleep_until(clock.now() + Duration::from_millis(50)).await;
                    }
                }
            }
            accepted.newest.lock().unwrap().insert(id, rev);
            accepted.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn check(
    world: &World,
    backend: &MongoBackend,
    accepted: &Accepted,
    resource: flare_core::model::ResourceId,
) {
    let newest = accepted.newest.lock().unwrap().clone();
    assert_eq!(newest.len(), DOCUMENTS);
    let keys = newest.keys().map(|id| {
        flare_core::model::DocumentKey::new(resource, DocumentUrl::parse(&url(*id)).unwrap())
    });
    let stored = backend.repository().documents(keys.collect()).await.unwrap();
    for ((id, rev), stored) in newest.iter().zip(stored) {
        let stored = stored.unwrap().version.revision().get();
        assert!(stored >= *rev as i64, "document {id}: {rev} was accepted, {stored} is stored");
    }
    // What each client was told, in order: never something older than before.
    let mut held: HashMap<(String, String), i64> = HashMap::new();
    let mut repeated = 0;
    for told in world.delivery.requests() {
        let body: serde_json::Value = serde_json::from_slice(&told.request.body).unwrap();
        let (id, revision) = (body["id"].as_str().unwrap(), body["revision"].as_i64().unwrap());
        let client = told.request.url.to_string();
        let before = held.insert((client, id.to_owned()), revision).unwrap_or(0);
        assert!(revision >= before, "{id}: {revision} was sent after {before}");
        repeated += u64::from(revision == before);
    }
    for (id, rev) in newest {
        for number in 0..SUBSCRIPTIONS {
            let client = format!("http://client-{number}.example/hook");
            let told = held.get(&(client, url(id))).copied().unwrap_or(0);
            assert!(told >= rev as i64, "document {id}: client {number} has {told}, not {rev}");
        }
    }
    println!("{} requests, {repeated} of them repeated", world.delivery.total());
}
