//! Takes a history; gives it runtimes to start, drop and stop: nodes of one
//! cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::port::Lease;
use flare_testkit::{ManualClock, intercept};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Clients;
use crate::history::History;
use crate::observed::{Observed, Place, Seen};
use crate::plan::{Plan, SLOTS};

/// The runtimes of a history.
pub(crate) struct Runs {
    running: Vec<(oneshot::Sender<()>, JoinHandle<flare_core::Result<()>>)>,
    seen: Arc<Mutex<Seen>>,
    starts: u64,
}

pub(crate) fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work);
}

impl Runs {
    /// Whether several of them work at a time.
    pub(crate) const MANY: bool = false;

    pub(crate) fn new(memory: &MemoryBackend, clients: &Clients) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let owners = Arc::clone(&seen);
        // Which of them sends does not show; under which epoch does.
        clients.owned_by(Box::new(move |subscription| {
            let owners = owners.lock().unwrap();
            owners.worker(subscription).map(|(_, epoch)| (String::new(), epoch))
        }));
        let runs = Self { running: Vec::new(), seen, starts: 0 };
        runs.look_at(memory);
        runs
    }

    /// Where lanes are, as these stores say.
    pub(crate) fn look_at(&self, memory: &MemoryBackend) {
        let place = Place::stored(memory.repository(), SLOTS);
        self.seen.lock().unwrap().place = Some(place);
    }

    /// What runtimes agree by.
    pub(crate) fn lease(&self, memory: &MemoryBackend) -> Arc<dyn Lease> {
        let observed = Observed { seen: Arc::clone(&self.seen), deaf: Arc::default() };
        Arc::new(intercept::lease(memory.lease(), observed))
    }
}

impl History {
    pub(crate) fn start(&mut self) {
        self.runs.starts += 1;
        self.note("start");
        if !self.runs.running.is_empty() {
            self.clients.may_be_handed_over();
        }
        let seed = self.seed.wrapping_mul(31).wrapping_add(self.runs.starts);
        let (flare, runtime) = build(&self.plan, &self.backend, &self.clients, &self.clock, seed);
        self.flare = flare;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(runtime.run(async move { drop(stopped.await) }));
        self.runs.running.push((stop, running));
    }

    /// A runtime is dropped wherever it is; another one goes on.
    pub(crate) async fn crash(&mut self) {
        if let Some((_, running)) = self.runs.running.pop() {
            self.note("crash");
            running.abort();
            let _ = running.await;
            self.clients.sender_crashed();
        }
        if self.random.bool() {
            self.pass(Duration::from_secs(self.random.clone().u64(..20))).await;
        }
        self.start();
    }

    /// A runtime is asked to end, and gets the time it needs.
    pub(crate) async fn stop(&mut self) {
        if let Some((stop, running)) = self.runs.running.pop() {
            self.note("stop");
            let _ = stop.send(());
            for _ in 0..60 {
                if running.is_finished() {
                    break;
                }
                self.pass(Duration::from_secs(1)).await;
            }
            assert!(running.is_finished(), "history {}: it does not drain", self.seed);
            // What could not be stored in time may be sent again.
            self.clients.sender_crashed();
        }
        self.start();
    }

    /// Nothing else happens to a runtime here.
    #[allow(clippy::unused_async, reason = "elsewhere it takes time")]
    pub(crate) async fn upset(&mut self) {}

    /// All runtimes come to an end.
    pub(crate) async fn end_all(&mut self) {
        self.drop_all().await;
    }

    /// All runtimes are dropped wherever they are.
    pub(crate) async fn drop_all(&mut self) {
        for (_, running) in self.runs.running.drain(..) {
            running.abort();
            let _ = running.await;
        }
    }

    pub(crate) async fn turns(&self, count: u32) {
        for _ in 0..count {
            tokio::task::yield_now().await;
        }
    }
}

pub(crate) fn build(
    plan: &Plan,
    backend: &flare_core::Backend,
    clients: &Clients,
    clock: &ManualClock,
    seed: u64,
) -> (Flare, flare_core::Runtime) {
    let builder = Flare::builder(backend.clone())
        .delivery(Arc::new(clients.clone()))
        .clock(Arc::new(clock.clone()))
        .settings(plan.settings())
        .seed(seed);
    plan.pulling(builder).build().unwrap()
}
