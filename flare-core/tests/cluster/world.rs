//! Takes settings; gives nodes that can be started, stopped, killed, frozen and cut off, and looks
//! after every step of time whether they keep what the cluster promises.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::cluster::{ClusterHandle, ClusterSettings, ClusterView, Health, SlotPlan};
use flare_core::internals::{ClusterMember, DrainLimit};
use flare_core::model::{Epoch, NodeId, Timestamp};
use flare_core::port::{Clock, Lease};
use flare_testkit::{ManualClock, intercept};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::gate::Gate;
use crate::stores::{Calls, Line};
use crate::worker::{Manners, Works, work};

/// Turns that everything gets before time moves: more than the longest chain of wake-ups.
const TURNS: u32 = 60;

pub(crate) const TTL: Duration = Duration::from_secs(10);

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn settings() -> ClusterSettings {
    let mut settings = ClusterSettings::default();
    settings.ttl = TTL;
    settings.call_limit = secs(2);
    settings.settle_after = secs(3);
    settings.move_percent = 25;
    settings.move_every = secs(1);
    settings.hand_over_limit = secs(16);
    settings.sweep_every = secs(30);
    settings
}

pub(crate) struct Node {
    pub(crate) handle: ClusterHandle,
    pub(crate) gate: Gate,
    pub(crate) cut: Arc<AtomicBool>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    works: Works,
}

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryBackend,
    /// What nodes have between themselves and the stores.
    pub(crate) lease: Arc<dyn Lease>,
    pub(crate) repository: Arc<dyn flare_core::port::Repository>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) slots: u32,
    seed: u64,
    /// The newest epoch of each slot, and whose.
    epochs: Vec<(Epoch, Option<NodeId>)>,
    generation: u64,
}

impl World {
    pub(crate) fn new(slots: u32, seed: u64) -> Self {
        let clock =
            ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)).limited(1_000_000);
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        Self {
            clock,
            lease: memory.lease(),
            repository: memory.repository(),
            memory,
            calls: Arc::default(),
            nodes: BTreeMap::new(),
            slots,
            seed: seed.wrapping_mul(1_000),
            epochs: vec![(Epoch::ZERO, None); slots as usize],
            generation: 0,
        }
    }

    pub(crate) fn start(&mut self, name: &str) {
        self.start_as(name, Manners::AtOnce, |_| {});
    }

    pub(crate) fn start_as(
        &mut self,
        name: &str,
        manners: Manners,
        change: impl FnOnce(&mut ClusterSettings),
    ) {
        self.seed += 1;
        let mut settings = settings();
        settings.name = name.to_owned();
        change(&mut settings);
        let cut = Arc::new(AtomicBool::new(false));
        let (inner, calls) = (Arc::clone(&self.lease), Arc::clone(&self.calls));
        let line = intercept::lease(inner, Line { calls, cut: Arc::clone(&cut) });
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let repository = Arc::clone(&self.repository);
        let (slots, drain) = (self.slots, Arc::new(DrainLimit::new(secs(12))));
        let (member, handle) = ClusterMember::new(
            Arc::new(line),
            repository,
            clock,
            settings,
            slots,
            drain,
            self.seed,
        )
        .unwrap();
        let (sender, receiver) = mpsc::channel(8);
        let (stop, stopped) = oneshot::channel::<()>();
        let works = Works::default();
        let worker = work(receiver, Arc::clone(&works), manners, self.clock.clone());
        let gate = Gate::default();
        let task = tokio::spawn(gate.guard(async move {
            let stop = async { drop(stopped.await) };
            tokio::join!(member.run(sender, stop), worker);
        }));
        let node = Node { handle, gate, cut, stop: Some(stop), task, works };
        let before = self.nodes.insert(name.to_owned(), node);
        assert!(before.is_none(), "{name} runs already");
    }

    pub(crate) fn node(&self, name: &str) -> &Node {
        &self.nodes[name]
    }

    /// The node is gone from one moment to the next.
    pub(crate) async fn kill(&mut self, name: &str) {
        let node = self.nodes.remove(name).unwrap();
        node.task.abort();
        let _ = node.task.await;
    }

    /// The node is asked to leave; it is over once it has.
    pub(crate) fn stop(&mut self, name: &str) {
        if let Some(stop) = self.nodes.get_mut(name).unwrap().stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) fn has_ended(&self, name: &str) -> bool {
        self.node(name).task.is_finished()
    }

    pub(crate) fn cut(&self, name: &str, cut: bool) {
        self.node(name).cut.store(cut, Ordering::Relaxed);
    }

    /// Who leads, by name.
    pub(crate) async fn leader(&self) -> Option<String> {
        let leader = self.view().await.leader?;
        let node = |node: &&Node| node.handle.node() == Some(leader);
        self.nodes.iter().find(|(_, it)| node(it)).map(|(name, _)| name.clone())
    }

    /// The cluster as its keys have it.
    pub(crate) async fn view(&self) -> ClusterView {
        ClusterView::read(&*self.memory.lease()).await.unwrap()
    }

    /// Slots that a node may work at this moment.
    pub(crate) fn works(&self, name: &str) -> Vec<u32> {
        let works = self.node(name).works.lock().unwrap();
        let trusted =
            works.iter().filter(|(slot, (_, trust))| trust.is_trusted(**slot, &self.clock));
        trusted.map(|(slot, _)| *slot).collect()
    }

    /// How many slots are worked at this moment.
    pub(crate) fn worked(&self) -> usize {
        self.nodes.keys().map(|name| self.works(name).len()).sum()
    }

    pub(crate) async fn turns(&self, turns: u32) {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass, and looks at every step.
    pub(crate) async fn pass(&mut self, time: Duration) {
        let end = self.clock.now() + time;
        loop {
            self.turns(TURNS).await;
            self.check().await;
            let next = self.clock.next_deadline().map_or(end, |at| at.min(end));
            if self.clock.now() >= end {
                return;
            }
            self.clock.advance_to(next);
            // What is over now is over before anybody else gets a turn.
            self.check().await;
        }
    }

    /// Lets time pass until something is so; tells how long that took.
    pub(crate) async fn until(&mut self, most: Duration, so: impl Fn(&Self) -> bool) -> Duration {
        let start = self.clock.now();
        while !so(self) {
            assert!(self.clock.now() - start <= most, "not within {most:?}");
            self.pass(Duration::from_millis(50)).await;
        }
        self.clock.now() - start
    }

    /// Lets time pass until everything is worked and nothing moves.
    pub(crate) async fn rest(&mut self, most: Duration) {
        let start = self.clock.now();
        while self.view().await.health != Health::Green || self.worked() != self.slots as usize {
            assert!(self.clock.now() - start <= most, "no rest within {most:?}");
            self.pass(Duration::from_millis(500)).await;
        }
    }

    /// Somebody is about to delete the plan: generations count from 1 again, epochs do not.
    pub(crate) fn forget_plan(&mut self) {
        self.generation = 0;
    }

    /// Lets time pass without looking: what was done to the cluster is beyond its promises.
    pub(crate) async fn pass_unchecked(&mut self, time: Duration) {
        self.clock.advance(time).await;
    }

    async fn check(&mut self) {
        let mut worker: BTreeMap<u32, &str> = BTreeMap::new();
        for name in self.nodes.keys() {
            for slot in self.works(name) {
                if let Some(other) = worker.insert(slot, name) {
                    panic!("slot {slot} is worked by {other} and {name}");
                }
            }
        }
        let Some(entry) = self.memory.lease().get("cluster/plan").await.unwrap() else { return };
        let plan = SlotPlan::decode(&entry.value).unwrap();
        if plan.generation == self.generation {
            return;
        }
        assert!(plan.generation > self.generation);
        self.generation = plan.generation;
        for ((slot, state), last) in plan.numbered().zip(&mut self.epochs) {
            let Some((node, takeover)) = state.worker() else { continue };
            let same = last.0 == takeover.epoch && last.1 == Some(node);
            assert!(same || takeover.epoch > last.0, "slot {slot}: {last:?} became {state:?}");
            *last = (takeover.epoch, Some(node));
        }
    }
}
