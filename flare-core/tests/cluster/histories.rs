//! Seeded histories: nodes join, leave, die, freeze and are cut off while the store fails, delays
//! and breaks watches. The world looks after every step; in the end everything is worked again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flare_core::cluster::NodeLoad;
use flare_core::port::{Clock, Lease, Repository};
use flare_testkit::{FaultPlan, FaultyLease, FaultyRepository};

use crate::pool;
use crate::worker::Manners;
use crate::world::{World, secs, settings};

/// Histories in an ordinary run.
const HISTORIES: u64 = 300;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[test]
fn every_history_has_one_worker_per_slot_and_ends_with_all_slots_worked() {
    pool::live_all(HISTORIES, run);
}

fn run(seed: u64, log: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { History::new(seed, log).live().await });
}

struct History {
    world: World,
    random: fastrand::Rng,
    faults: FaultPlan,
    log: bool,
}

impl History {
    fn new(seed: u64, log: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let slots = [1, 7, 24, 60][random.usize(..4)];
        let mut world = World::new(slots, seed);
        let odds = |random: &mut fastrand::Rng, most: f64| {
            if random.bool() { 0.0 } else { random.f64() * most }
        };
        let (failing, late) = (odds(&mut random, 0.1), odds(&mut random, 0.3));
        let watches = odds(&mut random, 0.3);
        let faults = FaultPlan::seeded(seed).with_before(failing).with_after(failing);
        let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
        let (lease, repository): (Arc<dyn Lease>, Arc<dyn Repository>) =
            (world.memory.lease(), world.memory.repository());
        // Late by more than a call may take, so that answers get lost too.
        let longest = settings().call_limit * 3 / 2;
        let lease = FaultyLease::new(lease, faults.clone())
            .dropping_watches(watches)
            .delaying(late, longest, clock);
        world.lease = Arc::new(lease);
        world.repository = Arc::new(FaultyRepository::new(repository, faults.clone()));
        Self { world, random, faults, log }
    }

    fn note(&self, what: impl std::fmt::Display) {
        if self.log {
            eprintln!("{} {what}", self.world.clock.now());
        }
    }

    async fn live(&mut self) {
        self.start();
        for _ in 0..self.random.u32(5..30) {
            match self.random.u8(..18) {
                0..=2 => self.start(),
                3 => self.kill().await,
                4 => self.stop(),
                5 | 6 => self.freeze(),
                7 | 8 => self.thaw(),
                9 => self.cut(true),
                10 => self.cut(false),
                11 => self.weigh(),
                12 | 13 => self.load(),
                _ => {}
            }
            let time = Duration::from_millis(self.random.u64(..9_000));
            self.world.pass(time).await;
        }
        self.heal().await;
    }

    fn any(&mut self) -> Option<String> {
        let names: Vec<String> = self.world.nodes.keys().cloned().collect();
        (!names.is_empty()).then(|| names[self.random.usize(..names.len())].clone())
    }

    /// Starts a node whose name is free, or was that of a node that has left.
    fn start(&mut self) {
        let ended: Vec<String> =
            self.world.nodes.keys().filter(|name| self.world.has_ended(name)).cloned().collect();
        ended.iter().for_each(|name| _ = self.world.nodes.remove(name));
        let free = NAMES.into_iter().find(|name| !self.world.nodes.contains_key(*name));
        let Some(name) = free else { return };
        let manners = match self.random.u8(..4) {
            0 => Manners::Never,
            1 => Manners::After(Duration::from_millis(self.random.u64(..14_000))),
            _ => Manners::AtOnce,
        };
        self.note(format_args!("start {name} {manners:?}"));
        self.world.start_as(name, manners, |_| {});
    }

    async fn kill(&mut self) {
        if let Some(name) = self.any() {
            self.note(format_args!("kill {name}"));
            self.world.kill(&name).await;
        }
    }

    fn stop(&mut self) {
        if let Some(name) = self.any() {
            self.note(format_args!("stop {name}"));
            self.world.stop(&name);
        }
    }

    fn freeze(&mut self) {
        if let Some(name) = self.any() {
            self.note(format_args!("freeze {name}"));
            self.world.node(&name).gate.freeze();
        }
    }

    fn thaw(&mut self) {
        let frozen = |name: &&String| self.world.node(name).gate.is_frozen();
        let found = self.world.nodes.keys().find(frozen).cloned();
        if let Some(name) = found {
            self.note(format_args!("thaw {name}"));
            self.world.node(&name).gate.thaw();
        }
    }

    fn cut(&mut self, cut: bool) {
        if let Some(name) = self.any() {
            self.note(format_args!("cut {name}: {cut}"));
            self.world.cut(&name, cut);
        }
    }

    fn weigh(&mut self) {
        if let Some(name) = self.any() {
            let weight = [0, 1, 50, 100, 300][self.random.usize(..5)];
            self.note(format_args!("weigh {name}: {weight}"));
            self.world.node(&name).handle.set_weight(weight);
        }
    }

    /// A node has much to do, or all of them.
    fn load(&mut self) {
        let busy = [0, 70, 100, 100][self.random.usize(..4)];
        let load = NodeLoad::new(0, 0, busy);
        if self.random.bool() {
            self.note(format_args!("load all: {busy}"));
            self.world.nodes.values().for_each(|node| node.handle.set_load(load));
        } else if let Some(name) = self.any() {
            self.note(format_args!("load {name}: {busy}"));
            self.world.node(&name).handle.set_load(load);
        }
    }

    /// Everything is well again: so is the cluster, soon, and then it is quiet.
    async fn heal(&mut self) {
        self.note("heal");
        self.faults.heal();
        for node in self.world.nodes.values() {
            node.cut.store(false, Ordering::Relaxed);
            node.gate.thaw();
            node.handle.set_weight(100);
            // Busy enough to take back nothing that was shed.
            node.handle.set_load(NodeLoad::new(0, 0, 70));
        }
        if self.world.nodes.len() == NAMES.len() {
            self.kill().await;
        }
        // One at least that stays.
        self.start();
        self.world.pass(secs(60)).await;
        self.world.rest(secs(300)).await;
        let writes = self.world.calls.writes.load(Ordering::Relaxed);
        self.world.pass(secs(40)).await;
        let later = self.world.calls.writes.load(Ordering::Relaxed);
        assert_eq!(later, writes, "it is at rest, and writes");
    }
}
