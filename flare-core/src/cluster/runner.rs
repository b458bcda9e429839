//! Takes plans; gives the changes of what this node works, and confirms what it gave up. Stops
//! before it starts; decides nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use super::context::NodeContext;
use super::follow::{Follower, PlannedChange};
use super::held::StillHeld;
use super::keys;
use super::meter::{self, SlotMetric};
use super::mirror::View;
use super::registry::Registration;
use super::state::StoredPlan;
use crate::error::{Error, ErrorKind, Result};
use crate::model::Epoch;
use crate::ownership::{SlotChange, Slots, Term};
use crate::port::{Entry, StoreRevision, Write};

/// How soon a confirmation that could not be stored is tried again.
const CONFIRM_AGAIN: Duration = Duration::from_millis(200);

/// Carries out what plans ask of this node.
#[derive(Debug)]
pub(crate) struct PlanRunner<'a> {
    context: &'a NodeContext,
    registration: &'a Registration,
    changes: &'a mpsc::Sender<SlotChange>,
    follower: Follower,
    /// What the lanes, which take the changes, may believe to be this node's: told apart from what is, for a
    /// change on its way may get lost when the registration does.
    believed: BTreeSet<u32>,
    followed: StoreRevision,
    /// When it was.
    followed_at: Duration,
    /// When this node last knew, for certain, that there was no plan newer than the one followed.
    fresh: Duration,
    /// It was said that it waits for a plan of as many slots as it is set to.
    waits: bool,
    /// What others know of its releases.
    told: StillHeld,
    releases: FuturesUnordered<Drained>,
}

type Drained = futures::future::BoxFuture<'static, Vec<(u32, Epoch)>>;

/// Hands plans that were read beside the watch to the runner.
#[derive(Debug)]
pub(crate) struct PlanReading(mpsc::Sender<PlanRead>);

#[derive(Debug)]
pub(crate) struct PlanRead {
    plan: Option<Entry>,
    asked: Duration,
    followed: oneshot::Sender<Result<()>>,
}

/// A way to hand plans over, and where they come out.
pub(crate) fn reading() -> (PlanReading, mpsc::Receiver<PlanRead>) {
    let (sender, receiver) = mpsc::channel(1);
    (PlanReading(sender), receiver)
}

impl PlanReading {
    /// Has the runner follow what was asked for at `asked`; returns once it has.
    pub(crate) async fn follow(&self, plan: Option<Entry>, asked: Duration) -> Result<()> {
        let gone =
            || Error::new(ErrorKind::Internal, "follow").with_detail("the plan's runner has ended");
        let (followed, answer) = oneshot::channel();
        self.0.send(PlanRead { plan, asked, followed }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl<'a> PlanRunner<'a> {
    pub(crate) fn new(
        context: &'a NodeContext,
        registration: &'a Registration,
        changes: &'a mpsc::Sender<SlotChange>,
    ) -> Self {
        Self {
            context,
            registration,
            changes,
            follower: Follower::new(registration.id),
            believed: BTreeSet::new(),
            followed: StoreRevision::default(),
            followed_at: Duration::ZERO,
            fresh: registration.asked,
            waits: false,
            told: StillHeld::default(),
            releases: FuturesUnordered::new(),
        }
    }

    /// Follows plans until the lanes take no changes any more, or the plan is gone.
    pub(crate) async fn run(
        &mut self,
        view: &mut View,
        reads: &mut mpsc::Receiver<PlanRead>,
        closing: &mut oneshot::Receiver<Duration>,
    ) -> Result<()> {
        let mut closed = false;
        loop {
            let plan = view.borrow_and_update().plan.clone();
            if let Some(plan) = plan {
                self.follow(&plan).await?;
            }
            let again = match self.confirm().await {
                Ok(()) => None,
                Err(error) if error.is_temporary() => {
                    warn!(?error, "a release could not be confirmed, will retry");
                    Some(self.context.monotonic() + CONFIRM_AGAIN)
                }
                Err(error) => return Err(error),
            };
            if closed && self.follower.is_idle() {
                return Ok(());
            }
            tokio::select! {
                biased;
                Some(slots) = self.releases.next() => self.released(&slots),
                () = self.context.sleep_until(self.follower.next_due()) => {
                    let late = self.follower.overdue(self.context.monotonic());
                    self.carry_out(late).await?;
                }
                Some(read) = reads.recv() => self.read(read).await?,
                changed = view.changed() => if changed.is_err() { return Ok(()) },
                until = &mut *closing, if !closed => {
                    closed = true;
                    let until = until.unwrap_or_default();
                    debug!(?until, "giving everything up");
                    let all = self.follower.close(until);
                    self.carry_out(all).await?;
                }
                () = self.context.sleep_until(again) => {}
            }
        }
    }

    /// Drops everything; tells whether there was anything to drop.
    pub(crate) async fn lose(mut self) -> bool {
        self.registration.trust.end();
        let slots: Slots = std::mem::take(&mut self.believed).into_iter().collect();
        if slots.is_empty() {
            return false;
        }
        warn!(slots = slots.len(), "all slots are lost with the registration");
        meter::slots_changed(SlotMetric::Lost, slots.len());
        // Lanes that do not listen any more work nothing.
        if self.changes.send(SlotChange::Lost { slots }).await.is_err() {
            debug!("the lanes have ended: they need not be told that all slots are lost");
        }
        true
    }

    /// Follows a plan that was read beside the watch, and answers once that is done.
    async fn read(&mut self, read: PlanRead) -> Result<()> {
        let plan = read.plan.as_ref().map(StoredPlan::read);
        let answer = match plan {
            Some(plan) if self.has_gone_back(plan.revision, read.asked) => {
                Err(Error::new(ErrorKind::Unavailable, "follow")
                    .with_detail("the store showed an older plan than before"))
            }
            Some(plan) => {
                self.follow(&plan).await?;
                self.fresh = read.asked;
                Ok(())
            }
            None if self.followed > StoreRevision::default() => {
                return Err(Error::new(ErrorKind::Lost, "follow").with_detail("the plan is gone"));
            }
            None => {
                self.fresh = read.asked;
                Ok(())
            }
        };
        // The caller may have given up waiting.
        let _ = read.followed.send(answer);
        Ok(())
    }

    /// Whether a plan that was asked for then shows that the store is not what it was. One that is
    /// merely overtaken does not: the watch was faster.
    fn has_gone_back(&self, read: StoreRevision, asked: Duration) -> bool {
        read < self.followed && asked >= self.followed_at
    }

    async fn follow(&mut self, stored: &StoredPlan) -> Result<()> {
        if stored.revision <= self.followed {
            return Ok(());
        }
        let unreadable =
            |detail: String| Err(Error::new(ErrorKind::Corrupt, "follow").with_detail(detail));
        let Some(plan) = &stored.plan else {
            return unreadable("the plan cannot be read by this version".to_owned());
        };
        let (planned, set) = (plan.slots.len(), self.context.slots);
        if planned != set as usize {
            if self.followed > StoreRevision::default() {
                let detail = format!("the cluster has {planned} slots now, this node {set}");
                return Err(Error::new(ErrorKind::Lost, "follow").with_detail(detail));
            }
            // There may be another plan once all nodes are set to the same number.
            if !std::mem::replace(&mut self.waits, true) {
                warn!(
                    "the cluster has {planned} slots, this node is set to {set}: it works nothing until \
                     no node with {planned} is left"
                );
            }
            return Ok(());
        }
        if self.follower.has_followed(plan.generation) {
            // Plans count on. One that does not was made by a leader that knew of none before.
            return Err(
                Error::new(ErrorKind::Lost, "follow").with_detail("plans were started over")
            );
        }
        (self.followed, self.followed_at) = (stored.revision, self.context.monotonic());
        for change in self.follower.apply(plan, self.fresh) {
            self.carry_out(Some(change)).await?;
        }
        Ok(())
    }

    async fn carry_out(&mut self, change: Option<PlannedChange>) -> Result<()> {
        let Some(change) = change else { return Ok(()) };
        let trust = &self.registration.trust;
        // What is trusted changes before the lanes are told: that takes time, and may have to wait.
        let mut dropped = Slots::default();
        let change = match change {
            SlotChange::Lost { slots } => {
                slots.iter().for_each(|slot| trust.close(slot));
                dropped.clone_from(&slots);
                warn!(slots = slots.len(), "slots are not this node's any more: dropped");
                meter::slots_changed(SlotMetric::Lost, slots.len());
                SlotChange::Lost { slots }
            }
            SlotChange::Releasing { slots, until, done: () } => {
                slots.iter().for_each(|slot| trust.limit(slot, until));
                let (done, drained) = oneshot::channel();
                let released = self.follower.epochs(&slots);
                self.releases.push(Box::pin(async move {
                    // Dropping the sender says the same.
                    let _ = drained.await;
                    released
                }));
                info!(slots = slots.len(), "is to give slots up");
                SlotChange::Releasing { slots, until, done: Arc::new(done) }
            }
            SlotChange::Granted { slots, term: takeover } => {
                slots.iter().for_each(|slot| trust.open(slot));
                self.believed.extend(slots.iter());
                info!(slots = slots.len(), epoch = takeover.epoch.get(), "was granted slots");
                meter::slots_changed(SlotMetric::Granted, slots.len());
                SlotChange::Granted { slots, term: Term::new(takeover, trust.clone()) }
            }
        };
        let gone = |_| Error::new(ErrorKind::Lost, "follow").with_detail("the lanes have ended");
        self.changes.send(change).await.map_err(gone)?;
        dropped.iter().for_each(|slot| _ = self.believed.remove(&slot));
        Ok(())
    }

    fn released(&mut self, slots: &[(u32, Epoch)]) {
        let released = self.follower.done(slots);
        for slot in &released {
            self.registration.trust.close(*slot);
            self.believed.remove(slot);
        }
        info!(slots = released.len(), "has given slots up");
        meter::slots_changed(SlotMetric::Released, released.len());
    }

    /// Tells the leader what was given up, if it does not know.
    async fn confirm(&mut self) -> Result<()> {
        let Some(held) = self.follower.confirmation(&self.told) else { return Ok(()) };
        let write = Write::new(keys::held(self.registration.id), held.encode()?);
        let write = write.lease(self.registration.lease);
        self.context.timed("write", self.context.lease.write(write)).await?;
        self.told = held;
        Ok(())
    }
}
