//! Takes names; gives whole Flares of one cluster that can be started, stopped, killed and frozen,
//! on the same memory and the same clock.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_backend_memory::{MemoryBackend, MemoryBroker};
use flare_core::Settings;
use flare_core::cluster::{ClusterSettings, ClusterView, Health};
use flare_core::model::{
    DocumentChange, NewResource, Resource, Subscription, SubscriptionSpec, Timestamp,
};
use flare_core::port::{Clock, Lease, Queue, Repository};
use flare_core::{Backend, Flare};
use flare_testkit::{ManualClock, intercept};
use futures::FutureExt;

use super::hosts::{Hosts, Told};
use super::node::Node;
use super::observed::{Observed, Place, Seen};

/// Rounds that everything gets before time moves, and turns of each node in a round.
const ROUNDS: u32 = 6;
const TURNS: u32 = 12;

pub(crate) const SLOTS: u32 = 8;
pub(crate) const TTL: Duration = Duration::from_secs(10);

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryBackend,
    /// What consumers pull from.
    pub(crate) broker: MemoryBroker,
    pub(crate) hosts: Hosts,
    pub(crate) nodes: BTreeMap<String, Node>,
    /// What nodes that start now are woken by.
    pub(crate) queue: Arc<dyn Queue>,
    /// And what they agree by.
    pub(crate) lease: Arc<dyn Lease>,
    /// While set, no watch shows what nodes say to all of them.
    pub(crate) deaf: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    seed: u64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let clock =
            ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)).limited(1_000_000);
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        let broker = MemoryBroker::with_clock(Arc::new(clock.clone()));
        let seen = Arc::<Mutex<Seen>>::default();
        seen.lock().unwrap().place = Some(Place::stored(memory.repository(), SLOTS));
        let hosts = Hosts::new(clock.clone(), Arc::clone(&seen));
        let (queue, lease) = (memory.queue(), memory.lease());
        let (nodes, seed) = (BTreeMap::new(), seed * 1_000);
        Self { clock, memory, broker, hosts, nodes, queue, lease, deaf: Arc::default(), seen, seed }
    }

    /// Nodes that have come to share all slots.
    pub(crate) fn of(names: &[&str], seed: u64) -> Self {
        let mut world = Self::new(seed);
        names.iter().for_each(|name| world.start(name));
        world.rest();
        world
    }

    pub(crate) fn start(&mut self, name: &str) {
        self.start_as(name, |_, _| {});
    }

    pub(crate) fn start_as(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Settings, &mut ClusterSettings),
    ) {
        self.seed += 1;
        let (mut settings, mut cluster) = (Settings::default(), ClusterSettings::default());
        settings.slots = Some(SLOTS);
        settings.workers = 1;
        settings.drain_limit = secs(8);
        settings.timeout = secs(60);
        cluster.name = name.to_owned();
        cluster.ttl = TTL;
        cluster.call_limit = secs(2);
        cluster.settle_after = secs(3);
        cluster.move_percent = 25;
        cluster.move_every = secs(1);
        cluster.hand_over_limit = secs(16);
        change(&mut settings, &mut cluster);
        let (seen, deaf) = (Arc::clone(&self.seen), Arc::clone(&self.deaf));
        let lease = intercept::lease(Arc::clone(&self.lease), Observed { seen, deaf });
        let backend =
            Backend::new(self.memory.repository(), Arc::clone(&self.queue), Arc::new(lease));
        let (flare, runtime) = Flare::builder(backend)
            .delivery(Arc::new(self.hosts.of(name)))
            .clock(Arc::new(self.clock.clone()))
            .source(Arc::new(self.broker.clone()))
            .settings(settings)
            .cluster(cluster)
            .seed(self.seed)
            .build()
            .unwrap();
        let before = self.nodes.insert(name.to_owned(), Node::start(flare, runtime));
        assert!(before.is_none(), "{name} runs already");
    }

    pub(crate) fn flare(&self, name: &str) -> Flare {
        self.nodes[name].flare.clone()
    }

    pub(crate) fn repository(&self) -> Arc<dyn Repository> {
        self.memory.repository()
    }

    /// The node is gone from one moment to the next.
    pub(crate) fn kill(&mut self, name: &str) {
        drop(self.nodes.remove(name).unwrap());
    }

    /// The node gets no time to run.
    pub(crate) fn freeze(&mut self, name: &str) {
        self.nodes.get_mut(name).unwrap().frozen = true;
        self.hosts.freeze(name);
    }

    pub(crate) fn thaw(&mut self, name: &str) {
        self.nodes.get_mut(name).unwrap().frozen = false;
    }

    /// Somebody asks a Flare something; as much time passes as it takes.
    pub(crate) fn ask<T>(&self, question: impl Future<Output = T>) -> T {
        let mut question = pin!(question);
        loop {
            if let Some(answer) = question.as_mut().now_or_never() {
                return answer;
            }
            self.turns();
            if let Some(next) = self.clock.next_deadline() {
                self.clock.advance_to(next);
            }
        }
    }

    /// The cluster as a node shows it.
    pub(crate) fn view(&self, name: &str) -> ClusterView {
        let flare = self.flare(name);
        self.ask(flare.cluster()).unwrap()
    }

    pub(crate) fn users(&self, by: &str) -> Resource {
        let new = NewResource::new("http://api.example/users/{id}").change_field("rev");
        let flare = self.flare(by);
        self.ask(flare.create_resource(new)).unwrap()
    }

    pub(crate) fn subscribe(&self, by: &str, to: &Resource, count: u32) -> Vec<Subscription> {
        let flare = self.flare(by);
        let client = |n: u32| {
            let spec = SubscriptionSpec::post(format!("http://client-{n}.example/{{id}}"));
            self.ask(flare.create_subscription(to.id, spec)).unwrap()
        };
        (0..count).map(client).collect()
    }

    pub(crate) fn put(&self, by: &str, id: u32, rev: i64) -> flare_core::Result<DocumentChange> {
        let flare = self.flare(by);
        let url = format!("http://api.example/users/{id}");
        self.ask(flare.put_json(&url, format!(r#"{{"rev":{rev}}}"#)))
    }

    /// How often nodes have written to what they agree by.
    pub(crate) fn coordination_writes(&self) -> u64 {
        self.seen.lock().unwrap().writes
    }

    /// How many lanes are worked.
    pub(crate) fn lanes(&self) -> usize {
        self.nodes.values().map(|node| node.flare.node().lanes).sum()
    }

    /// How many consumers are worked.
    pub(crate) fn consumers(&self) -> usize {
        self.nodes.values().map(|node| node.flare.node().consumers).sum()
    }

    /// Who told clients of a revision.
    pub(crate) fn told(&self, revision: i64) -> Vec<Told> {
        self.hosts.told().into_iter().filter(|it| it.revision == revision).collect()
    }

    /// The names of those who told clients of a revision.
    pub(crate) fn tellers(&self, revision: i64) -> BTreeSet<String> {
        self.told(revision).into_iter().map(|told| told.node).collect()
    }

    pub(crate) fn turns(&self) {
        for _ in 0..ROUNDS {
            self.nodes.values().for_each(|node| node.turns(TURNS));
        }
    }

    /// Lets time pass, from deadline to deadline.
    pub(crate) fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        loop {
            self.turns();
            if self.clock.now() >= end {
                return;
            }
            let next = self.clock.next_deadline().map_or(end, |deadline| deadline.min(end));
            self.clock.advance_to(next);
        }
    }

    /// Lets time pass until something is so; tells how long that took.
    pub(crate) fn until(&self, most: Duration, so: impl Fn(&Self) -> bool) -> Duration {
        let start = self.clock.now();
        while !so(self) {
            assert!(self.clock.now() - start <= most, "not within {most:?}");
            self.pass(Duration::from_millis(50));
        }
        self.clock.now() - start
    }

    /// Lets time pass until all slots are shared out and nothing moves any more.
    pub(crate) fn rest(&self) {
        self.pass(secs(20));
        let name = self.nodes.keys().next().unwrap().clone();
        self.until(secs(60), |world| world.view(&name).health == Health::Green);
    }
}
