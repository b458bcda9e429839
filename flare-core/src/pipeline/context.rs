//! Takes the ports and settings a host chose; gives every stage the same ones.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::counters::Counters;
use super::event::Events;
use super::herald::Herald;
use super::lane::{ContentBudget, Places};
use super::lanes::NearLanes;
use super::progress::{LoopReport, Progress, Pulse};
use super::pull::PullBells;
use super::restore::Restorer;
use super::settings::Settings;
use super::spread::MemberFilters;
use super::spread_all::ApartResources;
use super::store_clock::StoreClock;
use super::unreadable::UnreadableRecords;
use crate::error::Result;
use crate::filter::Filters;
use crate::model::{IdSource, NodeId, Timestamp};
use crate::ownership::DrainLimit;
use crate::port::{Clock, Delivery, Lease, Queue, Repository};
use crate::tools::lock;

/// What all stages of one Flare share. Nothing of it is global: two of them don't meet.
pub(crate) struct Context {
    pub(crate) repository: Arc<dyn Repository>,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) lease: Arc<dyn Lease>,
    pub(crate) delivery: Arc<dyn Delivery>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store_clock: Arc<StoreClock>,
    pub(crate) settings: Settings,
    pub(crate) events: Events,
    pub(crate) ids: IdSource,
    /// What this node is known by, fresh for every start.
    pub(crate) node: NodeId,
    pub(crate) progress: Progress,
    /// What lanes have counted and not stored yet.
    pub(crate) counters: Arc<Counters>,
    /// Slots that lanes are hashed onto.
    pub(crate) slots: u32,
    pub(crate) restorer: Restorer,
    /// Places among all requests of this runtime.
    pub(crate) places: Places,
    /// What the lanes of this runtime may hold of documents.
    pub(crate) content: ContentBudget,
    /// Tells other runtimes of subscriptions, where there may be any.
    pub(crate) herald: Option<Arc<dyn Herald>>,
    /// Wakes the reconciler: changes may have lost their tasks.
    pub(crate) tasks_lost: Notify,
    /// Wakes pullers that wait for a change.
    pub(crate) bells: PullBells,
    /// Wakes whoever does stored jobs: one was asked for.
    pub(crate) jobs_asked: Notify,
    pub(crate) drain_limit: Arc<DrainLimit>,
    /// Resources whose partitions are spread each by itself.
    pub(crate) apart: ApartResources,
    /// The lanes that this runtime works.
    pub(crate) near: NearLanes,
    /// What subscriptions' filters say.
    pub(crate) filters: Filters,
    /// The filters of those that documents are spread to.
    pub(crate) member_filters: MemberFilters,
    /// What could not be read.
    pub(crate) unreadable: UnreadableRecords,
    /// When it was built, by the monotonic clock.
    started: Duration,
    random: Mutex<fastrand::Rng>,
}

impl Context {
    #[allow(clippy::too_many_arguments, reason = "called in one place, by the builder")]
    pub(crate) fn new(
        repository: Arc<dyn Repository>,
        queue: Arc<dyn Queue>,
        lease: Arc<dyn Lease>,
        delivery: Arc<dyn Delivery>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        seed: u64,
    ) -> Self {
        // Apart from the others, which go by the store's time and only ever count up.
        let node = IdSource::seeded(!seed).next(clock.now()).into();
        let slots = settings.slots.unwrap_or_else(|| queue.facts().slots).max(1);
        Self {
            repository,
            queue,
            lease,
            delivery,
            store_clock: Arc::new(StoreClock::new(Arc::clone(&clock))),
            places: Places::new(&settings),
            content: ContentBudget::new(settings.content_limit),
            drain_limit: Arc::new(DrainLimit::new(settings.drain_limit)),
            settings,
            events: Events::new(),
            ids: IdSource::seeded(seed),
            node,
            started: clock.monotonic(),
            progress: Progress::default(),
            counters: Arc::default(),
            slots,
            restorer: Restorer::default(),
            herald: None,
            tasks_lost: Notify::new(),
            jobs_asked: Notify::new(),
            bells: PullBells::default(),
            apart: ApartResources::default(),
            near: NearLanes::default(),
            filters: Filters::default(),
            member_filters: MemberFilters::default(),
            unreadable: UnreadableRecords::default(),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            clock,
        }
    }

    /// How many items a store takes at a time.
    pub(crate) fn batch_limit(&self) -> usize {
        self.repository.facts().max_batch.max(1)
    }

    /// The store's time, as far as it is known here.
    pub(crate) fn now(&self) -> Timestamp {
        self.store_clock.now()
    }

    /// The store's time, which is asked for if it never was: for whoever may be no part of a runtime.
    pub(crate) async fn time(&self) -> Result<Timestamp> {
        self.store_clock.read(&*self.repository).await
    }

    /// When this node was built.
    pub(crate) fn started_at(&self) -> Timestamp {
        self.now() - self.clock.monotonic().saturating_sub(self.started)
    }

    /// What the loops of this node do.
    pub(crate) fn loops(&self) -> Vec<LoopReport> {
        self.progress.loops(self.clock.monotonic(), self.now())
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// A loop's way of saying what it does.
    pub(crate) fn pulse(&self, name: &'static str) -> Pulse {
        self.progress.pulse(name, &self.clock)
    }

    /// A number from 0 up to, but not including, 1.
    pub(crate) fn random(&self) -> f64 {
        lock(&self.random).f64()
    }

    /// A little more than `time`, so that what failed together does not come back together.
    pub(crate) fn jittered(&self, time: Duration) -> Duration {
        time.mul_f64(1.0 + self.random() / 5.0)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("settings", &self.settings).finish_non_exhaustive()
    }
}
