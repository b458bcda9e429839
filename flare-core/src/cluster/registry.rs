//! Takes a lease from the store; gives a node that others can see, and the time for which it is
//! certainly seen. Any doubt means lost: a node that lost its registration starts again with a fresh
//! incarnation, and nothing of what it had.

use std::time::Duration;

use tokio::sync::watch;
use tracing::warn;

use super::context::NodeContext;
use super::keys;
use super::mirror::{Mirror, View};
use super::record::{NodeLoad, NodeRecord};
use super::runner::PlanReading;
use crate::error::{Error, ErrorKind, Result};
use crate::model::NodeId;
use crate::ownership::Trust;
use crate::port::{Expect, LeaseId, StoreRevision, Write, Written};

/// What a node may change about itself while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// What the host gave it.
    pub(crate) weight: u32,
    /// How much of it the node keeps, in percent.
    pub(crate) kept: u32,
    pub(crate) draining: bool,
    pub(crate) load: NodeLoad,
}

impl Facts {
    /// What is left of the weight. Shedding leaves something of everything.
    pub(crate) fn kept_weight(&self) -> u32 {
        let kept = u64::from(self.weight) * u64::from(self.kept.min(100)) / 100;
        // No more than the weight was.
        u32::try_from(kept).unwrap_or(self.weight).max(self.weight.min(1))
    }

    /// Says it in the node's record; all but its load, which may wait.
    fn tell(&self, record: &mut NodeRecord) {
        record.weight = self.kept_weight();
        record.shed_percent = 100 - self.kept.min(100);
        record.draining = self.draining;
    }
}

/// A node's place in the cluster, for as long as its lease lives.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) id: NodeId,
    pub(crate) lease: LeaseId,
    pub(crate) trust: Trust,
    /// When the lease was asked for: nothing can have been asked of this node before.
    pub(crate) asked: Duration,
    record: NodeRecord,
    /// When the record was first stored.
    since: StoreRevision,
}

impl Registration {
    /// Registers once, under a fresh incarnation.
    pub(crate) async fn new(context: &NodeContext, facts: Facts) -> Result<Self> {
        let (settings, id) = (&context.settings, context.fresh_id());
        let asked = context.monotonic();
        let grant = context.timed("grant", context.lease.grant(settings.ttl)).await?;
        let trust = Trust::new(&grant, asked, context.slots);
        let name = settings.name.clone();
        let mut record = NodeRecord::new(name, settings.roles, facts.weight, grant.ttl);
        facts.tell(&mut record);
        record.load = facts.load.rounded();
        record.slots = Some(context.slots);
        let write = Write::new(keys::node(id), record.encode()?).lease(grant.id);
        let write = write.expect(Expect::Absent);
        let written = match context.timed("write", context.lease.write(write)).await {
            Ok(Written::At(since)) => Ok(since),
            Ok(Written::Conflict(_)) => Err(Error::new(ErrorKind::Conflict, "register")
                .with_detail("the incarnation exists already, another seed is needed")),
            Err(error) => Err(error),
        };
        match written {
            Ok(since) => Ok(Self { id, lease: grant.id, trust, asked, record, since }),
            Err(error) => {
                // Nothing was worked under it; if this fails too, it lapses by itself.
                revoke(context, grant.id).await;
                Err(error)
            }
        }
    }

    /// How many slots this node knows of.
    pub(crate) fn slots(&self) -> u32 {
        self.record.slots.unwrap_or_default()
    }

    /// Prolongs the lease for as long as it can be trusted; returns when it cannot any more.
    ///
    /// Every beat reads the plan as well, and is good only once the runner has followed it: so a
    /// node that is trusted has seen every plan that was written before three quarters of its
    /// lease's time ago, even if its watch has gone silent.
    pub(crate) async fn keep(&self, context: &NodeContext, mirror: &Mirror, reading: &PlanReading) {
        let mut missing = StoreRevision::default();
        loop {
            let left = self.trust.node_left(&*context.clock);
            if left.is_zero() {
                warn!(node = %self.id, "the lease may have lapsed: what is not certain is lost");
                return;
            }
            // Three tries fit into what is left, whatever fails.
            context.sleep(left / 3).await;
            let beat = tokio::select! {
                biased;
                beat = self.beat(context, reading) => beat,
                () = context.sleep(self.trust.node_left(&*context.clock)) => continue,
            };
            match beat {
                Ok(seen) => {
                    // The watch had a whole beat to show what was read before.
                    if missing > mirror.view().borrow().revision {
                        mirror.doubt();
                    }
                    missing = seen;
                }
                Err(error) if error.is_temporary() => {
                    warn!(node = %self.id, ?error, "could not prolong the lease, will retry");
                }
                Err(error) => {
                    warn!(node = %self.id, ?error, "the lease is lost");
                    return;
                }
            }
        }
    }

    async fn beat(&self, context: &NodeContext, reading: &PlanReading) -> Result<StoreRevision> {
        let asked = context.monotonic();
        let grant = context.timed("keep_alive", context.lease.keep_alive(self.lease)).await?;
        let plan = context.timed("get", context.lease.get(keys::PLAN)).await?;
        let revision = plan.as_ref().map_or(StoreRevision::default(), |plan| plan.revision);
        reading.follow(plan, asked).await?;
        if self.trust.prolong(&grant, asked, &*context.clock) {
            Ok(revision)
        } else {
            Err(Error::new(ErrorKind::Lost, "keep_alive").with_detail("the answer came too late"))
        }
    }

    /// Returns once the store says that this node is not there.
    pub(crate) async fn is_missed(&self, mut view: View) {
        let missed = view
            .wait_for(|state| state.revision >= self.since && !state.nodes.contains_key(&self.id))
            .await;
        if missed.is_ok() {
            warn!(node = %self.id, "the node's record is gone");
        }
    }

    /// Stores what changed about this node: weight and leaving at once, load now and then, and
    /// nothing else ever. Returns when the registration is lost.
    pub(crate) async fn publish(&self, context: &NodeContext, mut facts: watch::Receiver<Facts>) {
        let mut stored = self.record.clone();
        let mut load_at = context.monotonic() + context.settings.publish_every;
        let mut failures = 0;
        loop {
            let now = context.monotonic();
            let wanted = *facts.borrow_and_update();
            let mut record = stored.clone();
            wanted.tell(&mut record);
            let urgent = record != stored;
            record.load = wanted.load.rounded();
            if urgent || (record != stored && load_at <= now) {
                match self.store(context, &record).await {
                    Ok(()) => {
                        failures = 0;
                        stored = record;
                        load_at = now + context.settings.publish_every;
                    }
                    Err(error) if error.is_temporary() => {
                        failures += 1;
                        warn!(?error, "the node's record could not be stored, will retry");
                        context.pause(failures).await;
                    }
                    Err(error) => {
                        warn!(?error, "the node's record cannot be stored");
                        return;
                    }
                }
                continue;
            }
            let waits_for_load = (record != stored).then_some(load_at);
            tokio::select! {
                biased;
                changed = facts.changed() => if changed.is_err() {
                    // Every handle that could change anything is gone.
                    std::future::pending::<()>().await;
                },
                () = context.sleep_until(waits_for_load) => {}
            }
        }
    }

    async fn store(&self, context: &NodeContext, record: &NodeRecord) -> Result<()> {
        let write = Write::new(keys::node(self.id), record.encode()?).lease(self.lease);
        context.timed("write", context.lease.write(write)).await.map(drop)
    }

    /// Gives the lease back, and with it everything that is bound to it.
    pub(crate) async fn leave(&self, context: &NodeContext) {
        self.trust.end();
        revoke(context, self.lease).await;
    }
}

async fn revoke(context: &NodeContext, lease: LeaseId) {
    if let Err(error) = context.timed("revoke", context.lease.revoke(lease)).await {
        warn!(?error, "could not give a lease back, it lapses by itself");
    }
}
