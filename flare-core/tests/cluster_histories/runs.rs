//! Takes a history; gives it the nodes of a cluster to start, drop, stop, freeze and cut off, each
//! with a thread of its own to think it has.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::cluster::ClusterSettings;
use flare_core::port::Lease;
use flare_core::{Backend, Flare, Runtime};
use flare_testkit::{ManualClock, intercept};
use futures::FutureExt;

use crate::client::Clients;
use crate::history::History;
use crate::node::Node;
use crate::observed::{Observed, Place, Seen};
use crate::plan::Plan;
use crate::stores::{Calls, Line};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const SLOTS: u32 = 5;
/// Turns of one node before the next one has its own.
const TURNS: u32 = 10;

/// The nodes of a history.
pub(crate) struct Runs {
    nodes: BTreeMap<&'static str, Member>,
    seen: Arc<Mutex<Seen>>,
    starts: u64,
}

struct Member {
    node: Node,
    cut: Arc<AtomicBool>,
}

pub(crate) fn block_on(work: impl Future<Output = ()>) {
    // Not by tokio, whose runtimes are the nodes'. Nothing is awaited that needs anybody's help but
    // what gives the nodes their turns itself.
    assert!(work.now_or_never().is_some(), "it waits for somebody who gets no turns");
}

impl Runs {
    /// Whether several of them work at a time.
    pub(crate) const MANY: bool = true;

    pub(crate) fn new(memory: &MemoryBackend, clients: &Clients) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let owners = Arc::clone(&seen);
        clients.owned_by(Box::new(move |subscription| {
            let owners = owners.lock().unwrap();
            owners.worker(subscription).map(|(name, epoch)| (name.to_owned(), epoch))
        }));
        clients.may_be_handed_over();
        let runs = Self { nodes: BTreeMap::new(), seen, starts: 0 };
        runs.look_at(memory);
        runs
    }

    /// Where lanes are, as these stores say.
    pub(crate) fn look_at(&self, memory: &MemoryBackend) {
        let place = Place::stored(memory.repository(), SLOTS);
        self.seen.lock().unwrap().place = Some(place);
    }

    /// What nodes agree by.
    pub(crate) fn lease(&self, memory: &MemoryBackend) -> Arc<dyn Lease> {
        let observed = Observed { seen: Arc::clone(&self.seen), deaf: Arc::default() };
        Arc::new(intercept::lease(memory.lease(), observed))
    }

    fn reap(&mut self) {
        self.nodes.retain(|_, member| !member.node.has_ended());
    }
}

impl History {
    /// Another node joins; two of them, if there is none.
    pub(crate) fn start(&mut self) {
        self.runs.reap();
        let wanted = if self.runs.nodes.is_empty() { 2 } else { 1 };
        let free = NAMES.iter().filter(|name| !self.runs.nodes.contains_key(*name));
        let names: Vec<&'static str> = free.copied().take(wanted).collect();
        names.into_iter().for_each(|name| self.join(name));
    }

    fn join(&mut self, name: &'static str) {
        self.note(format_args!("start {name}"));
        self.runs.starts += 1;
        let seed = self.seed.wrapping_mul(31).wrapping_add(self.runs.starts);
        let cut = Arc::new(AtomicBool::new(false));
        let mut backend = self.backend.clone();
        let inner = backend.lease.take().unwrap();
        let line = Line { calls: Arc::<Calls>::default(), cut: Arc::clone(&cut) };
        backend.lease = Some(Arc::new(intercept::lease(inner, line)));
        let clients = self.clients.of(name);
        let (flare, runtime) = named(name, &self.plan, &backend, &clients, &self.clock, seed);
        self.flare = flare.clone();
        let node = Node::start(flare, runtime);
        self.runs.nodes.insert(name, Member { node, cut });
    }

    fn any(&mut self) -> Option<&'static str> {
        self.runs.reap();
        let names: Vec<&'static str> = self.runs.nodes.keys().copied().collect();
        self.random.choice(names)
    }

    /// A node is dropped wherever it is; another one joins, at once or later.
    pub(crate) async fn crash(&mut self) {
        if let Some(name) = self.any() {
            self.note(format_args!("crash {name}"));
            drop(self.runs.nodes.remove(name));
            self.clients.sender_crashed();
        }
        if self.random.bool() {
            self.pass(Duration::from_secs(self.random.clone().u64(..20))).await;
        }
        self.start();
    }

    /// A node is asked to end, and gets the time it needs.
    pub(crate) async fn stop(&mut self) {
        if let Some(name) = self.any() {
            self.note(format_args!("stop {name}"));
            self.thaw(name);
            self.runs.nodes.get_mut(name).unwrap().node.stop();
            for _ in 0..60 {
                if self.runs.nodes[name].node.has_ended() {
                    break;
                }
                self.pass(Duration::from_secs(1)).await;
            }
            let ended = self.runs.nodes[name].node.has_ended();
            assert!(ended, "history {}: {name} does not drain", self.seed);
            // What could not be stored in time may be sent again.
            self.clients.sender_crashed();
        }
        self.start();
    }

    /// Something happens to a node that only nodes of a cluster know.
    pub(crate) async fn upset(&mut self) {
        let Some(name) = self.any() else { return };
        match self.random.u8(..8) {
            0 | 1 if self.plan.crashes => {
                self.note(format_args!("freeze {name}"));
                self.runs.nodes.get_mut(name).unwrap().node.frozen = true;
                self.clients.freeze(name);
            }
            2 | 3 if self.plan.crashes => {
                self.note(format_args!("cut {name}"));
                self.runs.nodes[name].cut.store(true, Ordering::Relaxed);
            }
            4 => {
                let weight = [0, 50, 100, 300][self.random.usize(..4)];
                self.note(format_args!("weigh {name}: {weight}"));
                self.runs.nodes[name].node.flare.member().set_weight(weight);
            }
            5 => {
                self.note(format_args!("drain {name}"));
                self.runs.nodes.get_mut(name).unwrap().node.stop();
            }
            6 => self.start(),
            _ => self.thaw(name),
        }
        let time = Duration::from_millis(self.random.u64(..25_000));
        self.pass(time).await;
        if self.runs.nodes.len() < 2 {
            self.start();
        }
    }

    fn thaw(&mut self, name: &'static str) {
        let member = self.runs.nodes.get_mut(name).unwrap();
        if member.node.frozen || member.cut.load(Ordering::Relaxed) {
            member.node.frozen = false;
            member.cut.store(false, Ordering::Relaxed);
            self.note(format_args!("thaw {name}"));
        }
    }

    /// Whoever was frozen or cut off comes back for a moment; then all nodes are dropped.
    pub(crate) async fn end_all(&mut self) {
        for name in NAMES {
            if self.runs.nodes.contains_key(name) {
                self.thaw(name);
            }
        }
        self.pass(Duration::from_secs(3)).await;
        self.drop_all().await;
    }

    /// All nodes are dropped wherever they are.
    #[allow(clippy::unused_async, reason = "elsewhere it awaits")]
    pub(crate) async fn drop_all(&mut self) {
        self.runs.nodes.clear();
    }

    #[allow(clippy::unused_async, reason = "elsewhere it awaits")]
    pub(crate) async fn turns(&self, count: u32) {
        for _ in 0..count.div_ceil(TURNS) {
            self.runs.nodes.values().for_each(|member| member.node.turns(TURNS));
        }
    }
}

/// A handle outside of the nodes, for whoever asks before there are any.
pub(crate) fn build(
    plan: &Plan,
    backend: &Backend,
    clients: &Clients,
    clock: &ManualClock,
    seed: u64,
) -> (Flare, Runtime) {
    named("desk", plan, backend, clients, clock, seed)
}

fn named(
    name: &str,
    plan: &Plan,
    backend: &Backend,
    clients: &Clients,
    clock: &ManualClock,
    seed: u64,
) -> (Flare, Runtime) {
    let secs = Duration::from_secs;
    let (mut settings, mut cluster) = (plan.settings(), ClusterSettings::default());
    settings.slots = Some(SLOTS);
    settings.pinned_slots = 2;
    cluster.name = name.to_owned();
    cluster.ttl = secs(8);
    cluster.call_limit = secs(2);
    cluster.settle_after = secs(2);
    cluster.move_percent = 40;
    cluster.move_every = secs(1);
    cluster.hand_over_limit = secs(16);
    let builder = Flare::builder(backend.clone())
        .delivery(Arc::new(clients.clone()))
        .clock(Arc::new(clock.clone()))
        .settings(settings)
        .cluster(cluster)
        .seed(seed);
    plan.pulling(builder).build().unwrap()
}
