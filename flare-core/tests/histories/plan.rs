//! Takes a seed; gives what kind of history it is: which faults strike, how many subscriptions
//! there are, how they want to be told.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Backend;
use flare_core::FlareBuilder;
use flare_core::Settings;
use flare_core::internals::Shortcuts;
use flare_core::model::subscription::{RetryPolicy, SubscriptionBuilder};
use flare_core::model::{Placement, SubscriptionSpec};
use flare_core::port::Lease;
use flare_testkit::{
    FaultPlan, FaultyLease, FaultyQueue, FaultyRepository, FaultySources, ManualClock,
};

/// What lanes are hashed onto, where nobody wants more.
pub(crate) const SLOTS: u32 = 2;

/// How long a deleted subscription is cleaned up after.
pub(crate) const TASK_LIFETIME: Duration = Duration::from_secs(30);
/// How often expiry comes round at least: what a worker that was frozen makes for a subscription that is gone stays
/// until then.
pub(crate) const EXPIRE_EVERY: Duration = Duration::from_secs(120);

/// What kind of history it is.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: u32,
    pub(crate) documents: u32,
    pub(crate) partition_limit: u32,
    pub(crate) store_faults: f64,
    /// Store calls that take their time: anything may happen before or after their effect.
    pub(crate) delays: f64,
    pub(crate) queue_faults: f64,
    pub(crate) lease_faults: f64,
    pub(crate) client_faults: f64,
    pub(crate) crashes: bool,
    /// Few retries: some notifications are given up.
    pub(crate) impatient: bool,
    pub(crate) lanes: u32,
    /// Somebody pauses, resumes, replaces and deletes subscriptions, and replays dead letters.
    pub(crate) meddling: bool,
    /// Tombstones and dead letters are forgotten soon.
    pub(crate) retention: bool,
    /// Clients that only fail are soon suspended.
    pub(crate) strict: bool,
    /// Some versions expire.
    pub(crate) ttl: bool,
    /// Requests of each client in a second.
    pub(crate) rate: Option<u32>,
    /// Lanes have queues of their own.
    pub(crate) isolated: bool,
    /// Which ways are short: the long ones are taken by stores that cannot do better.
    pub(crate) shortcuts: Shortcuts,
    /// What documents are pulled from, if they are.
    pub(crate) sources: Option<FaultySources>,
}

impl Plan {
    pub(crate) fn new(random: &mut fastrand::Rng) -> Self {
        // Many histories have some kinds of faults only: what hides behind others shows there.
        let mut some = |most: f64| if random.bool() { random.f64() * most } else { 0.0 };
        let (store_faults, queue_faults, client_faults) = (some(0.15), some(0.4), some(0.7));
        let lease_faults = if random.u8(..4) == 0 { 0.05 } else { 0.0 };
        Self {
            steps: random.u32(8..30),
            documents: random.u32(1..5),
            partition_limit: random.u32(1..4),
            store_faults,
            delays: if random.bool() { 0.3 } else { 0.0 },
            queue_faults,
            lease_faults,
            client_faults,
            crashes: random.u8(..3) > 0,
            impatient: random.u8(..6) == 0,
            lanes: random.u32(1..4),
            meddling: random.bool(),
            retention: random.u8(..4) == 0,
            strict: random.u8(..4) == 0,
            ttl: random.u8(..6) == 0,
            rate: (random.u8(..4) == 0).then(|| random.u32(1..20)),
            isolated: random.u8(..3) == 0,
            shortcuts: shortcuts(random.clone()),
            sources: None,
        }
    }

    /// Whether lanes may be taken over late.
    pub(crate) fn is_slow(&self) -> bool {
        self.lease_faults > 0.0 || self.store_faults > 0.0 || self.delays > 0.0
    }

    /// Whether lanes may be lost before what is known of them is stored.
    pub(crate) fn is_rough(&self) -> bool {
        self.crashes || self.is_slow()
    }

    /// The memory backend behind everything that goes wrong.
    pub(crate) fn faulty(
        &self,
        memory: &MemoryBackend,
        lease: Arc<dyn Lease>,
        faults: &FaultPlan,
        clock: &ManualClock,
        seed: u64,
    ) -> Backend {
        let repository = FaultyRepository::new(memory.repository(), faults.clone()).delaying(
            self.delays,
            Duration::from_millis(700),
            Arc::new(clock.clone()),
        );
        let odds = self.queue_faults;
        // Its own plan, so that queues lose messages without failing, and the other way round.
        let trouble = FaultPlan::seeded(seed ^ 1).with_before(odds / 4.0).with_after(odds / 4.0);
        let queue = FaultyQueue::new(memory.queue(), trouble)
            .losing(odds)
            .duplicating(odds)
            .reordering(odds)
            .delaying(odds, Duration::from_secs(20));
        // A lease that ends before its time says so at once: what nobody is told, nobody can bear.
        let (errors, ends) = if seed.is_multiple_of(2) {
            (self.lease_faults, 0.0)
        } else {
            (0.0, self.lease_faults)
        };
        let lease = FaultyLease::new(lease, FaultPlan::seeded(seed ^ 2).with_before(errors))
            .expiring(ends)
            .dropping_watches(self.lease_faults);
        Backend::new(Arc::new(repository), Arc::new(queue), Arc::new(lease))
    }

    /// The same Flare, which knows what documents are pulled from.
    pub(crate) fn pulling(&self, builder: FlareBuilder) -> FlareBuilder {
        match &self.sources {
            Some(sources) => builder.source(Arc::new(sources.clone())),
            None => builder,
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.partition_limit = self.partition_limit;
        settings.slots = Some(SLOTS);
        settings.workers = 1;
        settings.shortcuts = self.shortcuts;
        settings.concurrency = 4;
        settings.task_lifetime = TASK_LIFETIME;
        settings.jobs_every = Duration::from_secs(5);
        settings.sample_every = Duration::from_secs(600);
        settings.sweep_every = Duration::from_secs(60);
        settings.expire_every = EXPIRE_EVERY;
        if self.isolated {
            settings.placement = Placement::Isolated;
        }
        if self.strict {
            settings.suspend_after = Duration::from_secs(40);
        }
        if self.retention {
            // Longer than any message lives here.
            settings.tombstone_retention = Duration::from_secs(600);
            settings.dead_letter_retention = Duration::from_secs(60);
            settings.expire_every = Duration::from_secs(20);
        }
        settings
    }

    /// What client `number` wishes, the `replacement`th time.
    pub(crate) fn subscription(
        &self,
        number: u32,
        replacement: u32,
        lanes: u32,
    ) -> SubscriptionBuilder {
        let retries = if self.impatient { 2 } else { 100 };
        let retry = RetryPolicy::builder()
            .num_retries(retries)
            .min_delay_target(Duration::from_secs(1))
            .max_delay_target(Duration::from_secs(8))
            .build()
            .unwrap();
        let url = format!("http://client-{number}.example/r{replacement}/{{id}}");
        let mut spec =
            SubscriptionSpec::post(url).discard([409]).retry(retry).concurrency(4).lanes(lanes);
        if self.ttl {
            spec = spec.ttl(Duration::from_secs(20));
        }
        match self.rate {
            Some(limit) => spec.rate(limit, Duration::from_secs(1)),
            None => spec,
        }
    }
}

/// Any of them, by numbers of their own: what happens in a history does not depend on them.
fn shortcuts(mut random: fastrand::Rng) -> Shortcuts {
    let mut random = random.fork();
    let mut shortcuts = Shortcuts::new(true);
    shortcuts.spread_at_once = random.u8(..4) > 0;
    shortcuts.hand_over = random.u8(..4) > 0;
    shortcuts
}
