//! Takes slots as they are granted and lost, and news of subscriptions; gives each active lane of
//! those slots a courier. Stops before it starts anew.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tracing::warn;

use super::context::Context;
use super::lane::{self, Groups, Hold, Lane, Places};
use super::ownership::{OwnershipChange, Term};
use super::prepare::{Prepared, prepare};
use super::retire::remove_later;
use super::stage::{Source, chain};
use super::stop::{Stopper, stop};
use super::task::Task;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{LaneId, Resource, Subscription, SubscriptionId, SubscriptionStatus, Timestamp};
use crate::port::QueueName;

/// News that wait for the lanes to hear them; a full line makes the slot's queue wait.
const NEWS: usize = 256;
/// How long a subscription that could not be read is left alone.
const AGAIN: Duration = Duration::from_secs(1);
/// After this long nobody is creating a subscription any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// The lanes this runtime works.
pub(crate) struct Lanes {
    context: Arc<Context>,
    /// Places among all requests of this runtime.
    places: Places,
    directory: Arc<Directory>,
    tenancy: Option<Tenancy>,
    news: mpsc::Receiver<SubscriptionId>,
    tell: mpsc::Sender<SubscriptionId>,
}

/// What is worked under one term.
struct Tenancy {
    term: Term,
    groups: Arc<Groups>,
    consumers: JoinSet<()>,
    couriers: JoinSet<LaneId>,
    stopper: Stopper,
    /// When all subscriptions are read next.
    sweep_at: Timestamp,
    /// Subscriptions to read again, and when.
    unread: Option<(Timestamp, BTreeSet<SubscriptionId>)>,
}

impl Tenancy {
    fn reread_at(&self) -> Timestamp {
        self.unread.as_ref().map_or(Timestamp::MAX, |(at, _)| *at)
    }
}

/// Who to wake.
#[derive(Default)]
struct Directory(Mutex<BTreeMap<LaneId, Worked>>);

struct Worked {
    /// How many lanes the subscription had when this one was started.
    lanes: u16,
    hold: Arc<Hold>,
    wake: Arc<Notify>,
    updates: watch::Sender<Arc<Subscription>>,
    stopper: Stopper,
    task: AbortHandle,
}

impl Worked {
    /// Hands newer settings over.
    fn update(&self, subscription: &Arc<Subscription>) {
        self.updates.send_replace(Arc::clone(subscription));
        self.wake.notify_one();
    }

    /// Has it finish what is in flight and end.
    fn stop(&self) {
        self.stopper.stop();
        self.wake.notify_one();
    }
}

impl Directory {
    fn with<R>(&self, work: impl FnOnce(&mut BTreeMap<LaneId, Worked>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether lanes are worked that share the subscription with another number of others.
    fn has_other_than(&self, subscription: SubscriptionId, lanes: u16) -> bool {
        self.with(|all| all.range(of(subscription)).any(|(_, worked)| worked.lanes != lanes))
    }

    /// What the lanes of a subscription share.
    fn hold(&self, subscription: SubscriptionId) -> Arc<Hold> {
        let one = |(_, worked): (&LaneId, &Worked)| Arc::clone(&worked.hold);
        self.with(|all| all.range(of(subscription)).next().map(one)).unwrap_or_default()
    }

    fn wake(&self, lane: LaneId) -> bool {
        self.with(|lanes| lanes.get(&lane).map(|worked| worked.wake.notify_one()).is_some())
    }
}

/// The lanes of one subscription.
fn of(subscription: SubscriptionId) -> RangeInclusive<LaneId> {
    LaneId::new(subscription, 0)..=LaneId::new(subscription, u16::MAX)
}

impl Lanes {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let (tell, news) = mpsc::channel(NEWS);
        Self {
            places: Places::new(&context.settings),
            context,
            directory: Arc::default(),
            tenancy: None,
            news,
            tell,
        }
    }

    /// Follows the ownership until its stream ends.
    pub(crate) async fn run(mut self, mut ownership: mpsc::Receiver<OwnershipChange>) {
        while let Some(change) = self.work(&mut ownership).await {
            match change {
                OwnershipChange::Granted(term) => self.begin(term),
                OwnershipChange::Lost => self.end(),
                OwnershipChange::Released(done) => {
                    // Lost while it drains: then there is nothing left to wait for.
                    tokio::select! {
                        biased;
                        _ = ownership.recv() => {}
                        () = self.drain() => {}
                    }
                    self.end();
                    drop(done);
                }
            }
        }
        self.end();
    }

    /// Keeps the lanes worked until the ownership changes, which interrupts whatever is under way:
    /// a slow store must not keep requests in flight that are no longer ours to make.
    async fn work(
        &mut self,
        ownership: &mut mpsc::Receiver<OwnershipChange>,
    ) -> Option<OwnershipChange> {
        tokio::select! {
            biased;
            change = ownership.recv() => change,
            () = self.tend() => None,
        }
    }

    /// Never ends: hears news and looks after what ended or could not be read.
    async fn tend(&mut self) {
        loop {
            let context = Arc::clone(&self.context);
            let Some(tenancy) = &mut self.tenancy else {
                // News of lanes that are not ours are not for us.
                self.news.recv().await;
                continue;
            };
            let (sweep_at, reread_at) = (tenancy.sweep_at, tenancy.reread_at());
            tokio::select! {
                biased;
                Some(id) = self.news.recv() => self.refresh(id).await,
                Some(ended) = tenancy.couriers.join_next() => self.ended(ended),
                () = context.clock.sleep_until(sweep_at) => self.sweep().await,
                () = context.clock.sleep_until(reread_at) => self.reread().await,
            }
        }
    }

    fn begin(&mut self, term: Term) {
        self.end();
        let (stopper, stop) = stop();
        let mut consumers = JoinSet::new();
        for slot in term.slots.clone() {
            let hear = Hear { directory: Arc::clone(&self.directory), tell: self.tell.clone() };
            let queue = QueueName::Slot(slot);
            let work = async move |tasks: Vec<Task>| hear.all(tasks).await;
            let pulse = self.context.pulse("wake");
            let source = Source::new(Arc::clone(&self.context), queue);
            consumers.spawn(source.consume(pulse, stop.clone(), work));
        }
        self.tenancy = Some(Tenancy {
            groups: Arc::new(Groups::new(&self.context, term.tenure.epoch)),
            term,
            consumers,
            couriers: JoinSet::new(),
            stopper,
            sweep_at: self.context.now(),
            unread: None,
        });
    }

    /// Ends at once: requests in flight are dropped, their outcome unknown.
    fn end(&mut self) {
        self.tenancy = None;
        self.directory.with(BTreeMap::clear);
        self.count();
    }

    /// Says how many lanes are worked.
    fn count(&self) {
        self.context.progress.set_lanes(self.directory.with(|lanes| lanes.len()));
    }

    /// Takes no more work and finishes what is in flight, within the limit.
    async fn drain(&mut self) {
        let Some(tenancy) = &mut self.tenancy else { return };
        tenancy.stopper.stop();
        self.directory.with(|lanes| lanes.values().for_each(Worked::stop));
        let all = async {
            while tenancy.couriers.join_next().await.is_some() {}
            while tenancy.consumers.join_next().await.is_some() {}
        };
        tokio::select! {
            biased;
            () = all => {}
            () = self.context.sleep(self.context.settings.drain_limit) => {
                warn!("requests still in flight are dropped; they are made again at the next start");
            }
        }
    }

    /// Reads all subscriptions: at the start, and now and then, for news may have been lost.
    async fn sweep(&mut self) {
        let context = Arc::clone(&self.context);
        let pause = match self.adopt_all().await {
            Ok(()) => context.jittered(context.settings.sweep_every),
            Err(error) => {
                warn!(error = %chain(&error), "could not read the subscriptions, will retry");
                AGAIN
            }
        };
        if let Some(tenancy) = &mut self.tenancy {
            tenancy.sweep_at = context.now() + pause;
        }
    }

    async fn adopt_all(&mut self) -> Result<()> {
        let context = Arc::clone(&self.context);
        let mut all = context.repository.scan_subscriptions(None);
        while let Some(subscription) = all.next().await {
            self.adopt(subscription?).await?;
        }
        Ok(())
    }

    async fn reread(&mut self) {
        let unread = self.tenancy.as_mut().and_then(|tenancy| tenancy.unread.take());
        for id in unread.map(|(_, ids)| ids).unwrap_or_default() {
            self.refresh(id).await;
        }
    }

    /// Reads a subscription again in a while.
    fn later(&mut self, ids: impl IntoIterator<Item = SubscriptionId>) {
        let at = self.context.now() + AGAIN;
        if let Some(tenancy) = &mut self.tenancy {
            tenancy.unread.get_or_insert((at, BTreeSet::new())).1.extend(ids);
        }
    }

    /// Reads a subscription again and works it as it now wants to be worked.
    async fn refresh(&mut self, id: SubscriptionId) {
        let outcome = match self.context.repository.subscription(id).await {
            Ok(Some(subscription)) => self.adopt(subscription).await,
            Ok(None) => {
                self.stop_lanes(id);
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            warn!(subscription = %id, error = %chain(&error), "could not read it, will retry");
            self.later([id]);
        }
    }

    async fn adopt(&mut self, subscription: Subscription) -> Result<()> {
        let Some(tenancy) = &self.tenancy else { return Ok(()) };
        if !tenancy.term.slots.contains(&self.context.slot(subscription.id)) {
            return Ok(());
        }
        let Some(subscription) = self.finish_creation(subscription).await? else {
            return Ok(());
        };
        if subscription.status != SubscriptionStatus::Active {
            self.stop_lanes(subscription.id);
            if subscription.status == SubscriptionStatus::Deleting {
                // Whoever marked it may have died before asking for this.
                remove_later(&self.context, &subscription).await?;
            }
            return Ok(());
        }
        let subscription = Arc::new(subscription);
        let lanes = subscription.spec.delivery().lanes();
        if self.directory.has_other_than(subscription.id, lanes) {
            // Each lane has other documents now: all end before any starts.
            self.stop_lanes(subscription.id);
            return Ok(());
        }
        let lanes = (0..lanes).map(|shard| LaneId::new(subscription.id, shard));
        let missing: Vec<LaneId> = self.directory.with(|worked| {
            let tell = |lane: &LaneId| match worked.get(lane) {
                Some(worked) => {
                    worked.update(&subscription);
                    false
                }
                None => true,
            };
            lanes.filter(tell).collect()
        });
        if missing.is_empty() {
            return Ok(());
        }
        let resource = self.context.repository.resource(subscription.resource).await?;
        let resource = resource.ok_or_else(|| {
            let detail = format!("subscription {} has no resource", subscription.id);
            Error::new(ErrorKind::Corrupt, "adopt").detail(detail)
        })?;
        for lane in missing {
            self.start(lane, &subscription, Arc::new(resource.clone()));
        }
        Ok(())
    }

    /// Goes on with a creation that somebody began and did not finish in good time.
    async fn finish_creation(&self, subscription: Subscription) -> Result<Option<Subscription>> {
        let age = self.context.now() - subscription.created_at;
        if subscription.status != SubscriptionStatus::Preparing || age < ABANDONED {
            return Ok(Some(subscription));
        }
        Ok(match prepare(&self.context, subscription).await? {
            Prepared::Ready(subscription) => Some(subscription),
            Prepared::ResourceGone | Prepared::Removed => None,
        })
    }

    fn start(&mut self, id: LaneId, subscription: &Arc<Subscription>, resource: Arc<Resource>) {
        let Some(tenancy) = &mut self.tenancy else { return };
        let (stopper, stop) = stop();
        let (updates, newest) = watch::channel(Arc::clone(subscription));
        let wake = Arc::new(Notify::new());
        let hold = self.directory.hold(id.subscription);
        let lanes = subscription.spec.delivery().lanes();
        let lane = Lane {
            context: Arc::clone(&self.context),
            id,
            term: tenancy.term.clone(),
            groups: Arc::clone(&tenancy.groups),
            resource,
            subscription: Arc::clone(subscription),
            updates: newest,
            hold: Arc::clone(&hold),
            wake: Arc::clone(&wake),
            stop,
        };
        let places = self.places.clone();
        let task = tenancy.couriers.spawn(async move {
            lane::run(lane, places).await;
            id
        });
        let worked = Worked { lanes, hold, wake, updates, stopper, task };
        self.directory.with(|all| all.insert(id, worked));
        self.count();
    }

    /// Lets the lanes of a subscription finish what is in flight and end.
    fn stop_lanes(&self, id: SubscriptionId) {
        self.directory.with(|lanes| lanes.range(of(id)).for_each(|(_, worked)| worked.stop()));
    }

    /// A lane ended: by a wish that may have changed meanwhile, or by a fault. Looked at again.
    fn ended(&mut self, ended: std::result::Result<LaneId, tokio::task::JoinError>) {
        let subscriptions = match ended {
            Ok(lane) => {
                self.directory.with(|lanes| lanes.remove(&lane));
                vec![lane.subscription]
            }
            Err(error) => {
                warn!(%error, "a lane failed, it starts again");
                self.directory.with(|lanes| {
                    let dead: Vec<LaneId> = lanes
                        .iter()
                        .filter(|(_, worked)| worked.task.id() == error.id())
                        .map(|(lane, _)| *lane)
                        .collect();
                    dead.iter().for_each(|lane| drop(lanes.remove(lane)));
                    dead.into_iter().map(|lane| lane.subscription).collect()
                })
            }
        };
        self.count();
        // Not at once: a lane that ends as soon as it starts must not make us spin.
        self.later(subscriptions);
    }
}

/// Listens to the queue of one slot.
struct Hear {
    directory: Arc<Directory>,
    tell: mpsc::Sender<SubscriptionId>,
}

impl Hear {
    async fn all(&self, tasks: Vec<Task>) -> Vec<Result<()>> {
        let mut answers = Vec::with_capacity(tasks.len());
        for task in tasks {
            answers.push(self.one(task).await);
        }
        answers
    }

    async fn one(&self, task: Task) -> Result<()> {
        let unknown: BTreeSet<SubscriptionId> = match task {
            Task::Wake { lanes } => {
                let asleep = lanes.into_iter().filter(|lane| !self.directory.wake(*lane));
                asleep.map(|lane| lane.subscription).collect()
            }
            Task::Refresh { subscription } => [subscription].into(),
            Task::Restored => {
                self.directory.with(|lanes| lanes.values().for_each(|it| it.wake.notify_one()));
                return Ok(());
            }
            _ => {
                let error = Error::new(ErrorKind::Internal, "wake");
                return Err(error.detail("another stage's task"));
            }
        };
        for subscription in unknown {
            let told = self.tell.send(subscription).await;
            told.map_err(|_| {
                Error::new(ErrorKind::Unavailable, "wake").detail("lanes are ending")
            })?;
        }
        Ok(())
    }
}
