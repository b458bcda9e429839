//! Takes a number of rounds and a seed; sets everything up, makes the rounds, and says whether all held.

use std::collections::BTreeSet;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Flare;
use flare_core::cluster::{ClusterView, Health};
use flare_core::model::{NewResource, NodeId, SubscriptionId, SubscriptionSpec};
use flare_testkit::LinkMode;
use futures::{StreamExt, stream};

use crate::Options;
use crate::client::Client;
use crate::faults::Kind;
use crate::fleet::{DATABASE, Fleet};
use crate::judge::{judge, judge_pace};
use crate::load::Load;
use crate::losses::Losses;
use crate::report::{self, Round};
use crate::rows::Rows;
use crate::stores::Stores;
use crate::world::{self, LANES, NODES, RESOURCES, SLOTS, SUBSCRIPTIONS, TTL};

/// How often it is looked whether something has come true.
const LOOK: Duration = Duration::from_millis(50);
/// What has not come true by then never does.
const PATIENCE: Duration = Duration::from_secs(90);
pub fn main(options: &Options) -> ExitCode {
    let stores = Stores::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let holds = runtime.block_on(async {
        tokio::select! {
            holds = run(&stores, options) => Some(holds),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    match holds {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => {
            let Options { rounds, seed, .. } = options;
            println!("\nDid not hold. Again: scripts/chaos {rounds} --seed {seed}");
            let kept = stores.keep_logs();
            println!("The nodes' logs: {}", kept.display());
            ExitCode::FAILURE
        }
        None => ExitCode::from(130),
    }
}

async fn run(stores: &Stores, options: &Options) -> bool {
    let Options { rounds, seed, busy } = *options;
    println!(
        "{NODES} nodes, {LANES} lanes in {SLOTS} slots, leases of {TTL:?}, {} puts a second to {} \
         clients each; seed {seed}",
        world::RATE,
        SUBSCRIPTIONS,
    );
    let mut random = fastrand::Rng::with_seed(seed);
    let kinds = Kind::series(rounds, &mut random);
    let mut driver = Driver::set_up(stores, random, busy).await;
    report::head();
    let mut made = Vec::new();
    for (number, kind) in (1..).zip(kinds) {
        let round = driver.round(kind).await;
        round.print(number);
        made.push(round);
    }
    report::summary(&made);
    driver.conclude();
    made.iter().all(|round| round.violations.is_empty())
}

struct Driver<'a> {
    stores: &'a Stores,
    random: fastrand::Rng,
    fleet: Fleet,
    flare: Flare,
    client: Client,
    load: Load,
    losses: Losses,
    rows: Rows,
    /// The slot of each lane.
    slots: Vec<u32>,
    /// When it was last looked at what came.
    judged: Instant,
    busy: bool,
}

/// Whom a round is about.
pub struct Victim {
    /// Processes that may have had something in flight.
    pub names: BTreeSet<String>,
    /// Their incarnations.
    ids: BTreeSet<NodeId>,
    lanes: BTreeSet<usize>,
}

impl<'a> Driver<'a> {
    async fn set_up(stores: &'a Stores, mut random: fastrand::Rng, busy: bool) -> Self {
        let flare = connect(stores).await;
        let mut fleet = Fleet::new(stores);
        for _ in 0..NODES {
            fleet.start().await;
        }
        let client = Client::start().await;
        let lanes = subscribe(&flare, &client).await;
        let slots = stream::iter(&lanes).map(|id| slot(&flare, id)).buffered(10).collect().await;
        let rows = Rows::watch(&stores.mongodb, &lanes).await;
        let load = Load::start(flare.clone(), random.u64(..));
        let losses = Losses::watch(flare.clone());
        Self {
            stores,
            random,
            fleet,
            flare,
            client,
            load,
            losses,
            rows,
            slots,
            judged: Instant::now(),
            busy,
        }
    }

    async fn round(&mut self, kind: Kind) -> Round {
        self.well().await;
        self.rows.seen(|seen| (seen.most_pending, seen.slowest) = Default::default());
        // It comes at any time, to a cluster that works.
        self.pause(500, 2_500).await;
        let victim = self.choose(kind).await;
        let began = Instant::now();
        self.strike(kind, &victim).await;
        let away = Duration::from_millis(self.random.u64(500..8_000));
        let (in_doubt, (planned, delivered), ()) = tokio::join!(
            self.rows.pending(&victim.lanes),
            self.taken_over(kind, &victim, began),
            self.etcd_is_back(kind, away),
        );
        let unheard = self.repair(kind, &victim, began).await;
        self.well().await;
        let well = began.elapsed();
        let mut violations = Vec::new();
        let settled = self.settled(&mut violations).await;
        let mut round = Round {
            kind,
            planned,
            delivered,
            store: self.rows.seen(|seen| seen.slowest),
            well,
            settled,
            requests: 0,
            doubled: 0,
            losses: 0,
            in_doubt,
            late: 0,
            violations,
        };
        self.judge(&mut round, &victim, &(began + TTL..unheard));
        round
    }

    /// Compares what was seen with what is promised.
    fn judge(&mut self, round: &mut Round, victim: &Victim, unheard: &Range<Instant>) {
        // Whatever came since the round before, so that nothing comes in between.
        let since = std::mem::replace(&mut self.judged, Instant::now());
        let heard = self.client.notes().take();
        round.requests = heard.arrivals.len();
        round.doubled = heard.doubled.len();
        round.losses = self.losses.since(since).len();
        let sudden = matches!(round.kind, Kind::Kill | Kind::KillLeader | Kind::Freeze);
        if !(sudden && round.losses == 1) {
            // Who cannot reach etcd works on for as long as it is trusted; what is in flight then is in
            // doubt, and that was pending.
            round.in_doubt = round.losses * self.rows.seen(|seen| seen.most_pending);
        }
        judge(round, &heard, victim, unheard);
        if !self.busy {
            judge_pace(round, &heard, &self.losses);
        }
        let fallen = self.rows.seen(|seen| std::mem::take(&mut seen.fallen));
        round.violations.extend(fallen.into_iter().map(|row| format!("fell: {row}")));
    }

    /// Whom it hits.
    async fn choose(&mut self, kind: Kind) -> Victim {
        let view = self.view().await;
        let name = |id: NodeId| {
            let node = view.nodes.iter().find(|node| node.id == id).unwrap();
            node.record.as_ref().unwrap().name.clone()
        };
        let leader = view.leader.unwrap();
        let mut ids: Vec<NodeId> = view.nodes.iter().map(|node| node.id).collect();
        match kind {
            Kind::KillLeader => ids = vec![leader],
            Kind::Kill => ids.retain(|id| *id != leader),
            // Anybody, the leader too.
            Kind::Freeze | Kind::CutSilently | Kind::CutByReset | Kind::RestartEtcd => {}
        }
        if kind.loses_a_node() {
            ids = vec![ids[self.random.usize(..ids.len())]];
        }
        let ids: BTreeSet<NodeId> = ids.into_iter().collect();
        let plan = view.plan.as_ref().unwrap();
        let is_hit = |slot: u32| {
            plan.slots[slot as usize].worker().is_some_and(|(worker, _)| ids.contains(&worker))
        };
        let lanes = (0..LANES).filter(|lane| is_hit(self.slots[*lane])).collect();
        Victim { names: ids.iter().map(|id| name(*id)).collect(), ids, lanes }
    }

    /// Does it.
    async fn strike(&mut self, kind: Kind, victim: &Victim) {
        let name = victim.names.first().unwrap();
        match kind {
            Kind::Kill | Kind::KillLeader => self.fleet.kill(name).await,
            Kind::Freeze => self.fleet.freeze(name),
            Kind::CutSilently => self.fleet.set_way_to_etcd(name, LinkMode::Silent),
            Kind::CutByReset => self.fleet.set_way_to_etcd(name, LinkMode::Reset),
            Kind::RestartEtcd => self.stores.kill_etcd().await,
        }
    }

    async fn etcd_is_back(&self, kind: Kind, away: Duration) {
        if kind == Kind::RestartEtcd {
            tokio::time::sleep(away).await;
            self.stores.start_etcd().await;
        }
    }

    /// Undoes what can be undone, and replaces what cannot; tells when it began to.
    async fn repair(&mut self, kind: Kind, victim: &Victim, began: Instant) -> Instant {
        let mut unheard = Instant::now();
        let name = victim.names.first().unwrap();
        match kind {
            Kind::Kill | Kind::KillLeader => self.fleet.start().await,
            Kind::RestartEtcd => {}
            Kind::Freeze | Kind::CutSilently | Kind::CutByReset => {
                let beyond = TTL + Duration::from_millis(self.random.u64(500..3_000));
                tokio::time::sleep_until((began + beyond).into()).await;
                unheard = Instant::now();
                match kind {
                    Kind::Freeze => self.fleet.thaw(name),
                    _ => self.fleet.set_way_to_etcd(name, LinkMode::Open),
                }
            }
        }
        unheard
    }

    /// How long it took until all slots were given to nodes that are there, and until a lane of the
    /// victim's was told something by somebody else.
    async fn taken_over(
        &self,
        kind: Kind,
        victim: &Victim,
        began: Instant,
    ) -> (Option<Duration>, Option<Duration>) {
        if !kind.loses_a_node() {
            return (None, None);
        }
        let planned = comes_true(async || self.is_taken_over(victim).await).await;
        let first = || self.client.notes().first_by_others(began, &victim.lanes, &victim.names);
        comes_true(async || first().is_some()).await;
        (planned.map(|at| at - began), first().map(|at| at - began))
    }

    async fn is_taken_over(&self, victim: &Victim) -> bool {
        let Ok(view) = self.flare.cluster().await else { return false };
        let Some(plan) = &view.plan else { return false };
        let there = |id: NodeId| view.nodes.iter().any(|node| node.id == id);
        let owner = |id: NodeId| !victim.ids.contains(&id) && there(id);
        plan.slots.iter().all(|slot| slot.worker().is_some_and(|(node, _)| owner(node)))
    }

    async fn well(&mut self) {
        wait_until_well(&self.flare, &mut self.fleet).await;
    }

    /// Pauses the load until every lane has the newest of everything; tells how long that took.
    async fn settled(&self, violations: &mut Vec<String>) -> Duration {
        let paused = self.load.pause().await;
        let began = Instant::now();
        let missing = || {
            let (notes, mut missing) = (self.client.notes(), Vec::new());
            for ((resource, document), revision) in self.load.newest() {
                for lane in resource * SUBSCRIPTIONS..(resource + 1) * SUBSCRIPTIONS {
                    if notes.revision((lane, document)) != Some(revision) {
                        missing.push((lane, document, revision, notes.revision((lane, document))));
                    }
                }
            }
            missing
        };
        let all: BTreeSet<usize> = (0..LANES).collect();
        let done = async || missing().is_empty() && self.rows.pending(&all).await == 0;
        if comes_true(done).await.is_none() {
            let pending = self.rows.pending(&all).await;
            violations.push(format!("lost: {pending} rows pending, missing {:?}", missing()));
        }
        drop(paused);
        began.elapsed()
    }

    fn conclude(&self) {
        let (looks, raised) = self.rows.seen(|seen| (seen.looks, seen.raised));
        let refusals = self.fleet.refusals();
        println!(
            "\n{looks} looks at all rows saw {raised} epochs rise; a fence refused a node {refusals} \
             times"
        );
    }

    async fn view(&self) -> ClusterView {
        self.flare.cluster().await.expect("etcd is there")
    }

    async fn pause(&mut self, least: u64, most: u64) {
        tokio::time::sleep(Duration::from_millis(self.random.u64(least..most))).await;
    }
}

/// A handle that is never run: it puts documents and looks at the cluster.
pub async fn connect(stores: &Stores) -> Flare {
    let config = MongoConfig::new(&stores.mongodb).database(DATABASE).create_missing();
    let lease = EtcdLease::connect(EtcdConfig::new([&stores.etcd])).await.unwrap();
    let builder = Flare::builder(MongoBackend::connect(config).await.unwrap());
    let builder = builder.lease(Arc::new(lease)).settings(world::settings());
    builder.cluster(world::membership("driver")).build().unwrap().0
}

/// Returns once every node is there and has its share.
pub async fn wait_until_well(flare: &Flare, fleet: &mut Fleet) {
    let names = fleet.names();
    let is_well = |view: &ClusterView| {
        let records = view.nodes.iter().filter_map(|node| node.record.as_ref());
        let there: BTreeSet<String> = records.map(|record| record.name.clone()).collect();
        let least = SLOTS as usize / NODES / 2;
        view.health == Health::Green
            && view.nodes.len() == NODES
            && there == names
            && view.nodes.iter().all(|node| node.slots >= least)
    };
    let well = comes_true(async || flare.cluster().await.is_ok_and(|view| is_well(&view))).await;
    let ended = fleet.ended();
    assert!(ended.is_empty(), "{ended:?} ended by themselves");
    assert!(well.is_some(), "not well again: {:?}", flare.cluster().await);
}

/// When it came true, unless it never does.
async fn comes_true(is_true: impl AsyncFn() -> bool) -> Option<Instant> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if is_true().await {
            return Some(Instant::now());
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}

/// A subscription per lane, in the order of their numbers.
async fn subscribe(flare: &Flare, client: &Client) -> Vec<SubscriptionId> {
    let mut lanes = Vec::new();
    for resource in 0..RESOURCES {
        let new = NewResource::new(world::endpoint(resource)).change_field("revision");
        let id = flare.create_resource(new).await.unwrap().id;
        let numbers = resource * SUBSCRIPTIONS..(resource + 1) * SUBSCRIPTIONS;
        let create = |lane| flare.create_subscription(id, SubscriptionSpec::post(client.url(lane)));
        let made = stream::iter(numbers).map(create).buffered(10);
        lanes.extend(made.map(|made| made.unwrap().id).collect::<Vec<_>>().await);
    }
    lanes
}

/// Queues are named after their slots.
async fn slot(flare: &Flare, id: &SubscriptionId) -> u32 {
    let queue = flare.subscription_status(*id).await.unwrap().queue;
    queue.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}
