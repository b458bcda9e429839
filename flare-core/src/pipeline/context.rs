//! Takes the ports and settings a host chose; gives every stage the same ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};

use super::consumers::PictureCache;
use super::counters::Counters;
use super::current_trace::CurrentTrace;
use super::event::Events;
use super::lane::{ContentBudget, SendLimit};
use super::lanes::NearLanes;
use super::overview::OverviewCache;
use super::progress::{LoopReport, Progress, Pulse};
use super::pull::{self, PullBells};
use super::put_counts::PutCounts;
use super::restore::Restorer;
use super::settings::Settings;
use super::spread::MemberFilters;
use super::spread_all::ApartResources;
use super::store_clock::StoreClock;
use super::unreadable::UnreadableRecords;
use super::wake::Announcer;
use crate::audit::{AuditBounds, AuditLog};
use crate::error::Result;
use crate::filter::Filters;
use crate::model::{Actor, IdSource, JobId, NodeId, Timestamp};
use crate::ownership::DrainLimit;
use crate::port::{Clock, Delivery, Lease, Queue, Repository, SourceConnector};
use crate::tools::lock;

/// Keeps ids of the log apart from all others.
const AUDIT_SEED: u64 = 0x6175_6469_7421;

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
    /// SendLimit among all requests of this runtime.
    pub(crate) send_limit: SendLimit,
    /// What this runtime may hold of documents.
    pub(crate) content: ContentBudget,
    /// Announces changes of subscriptions to other runtimes, where there may be any.
    pub(crate) announcer: Option<Arc<dyn Announcer>>,
    /// What opens the sources of consumers, by the kind.
    pub(crate) connectors: BTreeMap<&'static str, Arc<dyn SourceConnector>>,
    /// Which trace the host records the work at hand in.
    pub(crate) current_trace: CurrentTrace,
    /// Wakes the reconciler: changes may have lost their tasks.
    pub(crate) tasks_lost: Notify,
    /// Wakes pullers that wait for a change.
    pub(crate) bells: PullBells,
    /// Turns of pullers that hand something out.
    pub(crate) pull_turns: Semaphore,
    /// Wakes the runner of stored jobs: one was asked for.
    pub(crate) jobs_asked: Notify,
    /// The stored job that this runtime has a turn at.
    pub(crate) job_at_work: watch::Sender<Option<JobId>>,
    pub(crate) drain_limit: Arc<DrainLimit>,
    /// Resources whose partitions are spread each by itself.
    pub(crate) apart: ApartResources,
    /// The lanes that this runtime works.
    pub(crate) near: NearLanes,
    /// What subscriptions' filters say.
    pub(crate) filters: Filters,
    /// The filters of those that documents are spread to.
    pub(crate) member_filters: MemberFilters,
    /// The puts of this node.
    pub(crate) puts: PutCounts,
    /// How subscriptions are doing, for all who look.
    pub(crate) overviews: OverviewCache,
    /// How consumers are doing, for all who look.
    pub(crate) consumers_seen: PictureCache,
    /// This node, as the log of what was done names it.
    pub(crate) actor: Actor,
    /// What was done, to be stored.
    pub(crate) audit: AuditLog,
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
        let store_clock = Arc::new(StoreClock::new(Arc::clone(&clock)));
        let (told, time) = (Arc::clone(&repository), Arc::clone(&store_clock));
        let bounds = AuditBounds {
            entries: settings.audit_limit.into(),
            retention: settings.audit_retention,
        };
        let now = move || time.now();
        let audit = AuditLog::new(told, Arc::clone(&clock), now, bounds, seed ^ AUDIT_SEED);
        Self {
            repository,
            queue,
            lease,
            delivery,
            store_clock,
            send_limit: SendLimit::new(&settings),
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
            announcer: None,
            connectors: BTreeMap::new(),
            current_trace: CurrentTrace::default(),
            tasks_lost: Notify::new(),
            jobs_asked: Notify::new(),
            job_at_work: watch::Sender::new(None),
            bells: PullBells::default(),
            pull_turns: Semaphore::new(pull::SIDE_BY_SIDE),
            apart: ApartResources::default(),
            near: NearLanes::default(),
            filters: Filters::default(),
            member_filters: MemberFilters::default(),
            puts: PutCounts::default(),
            overviews: OverviewCache::default(),
            consumers_seen: PictureCache::default(),
            actor: Actor::Host,
            audit,
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

    /// The store's time, which is asked for if it never was: for calls of a handle whose runtime may not run.
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
