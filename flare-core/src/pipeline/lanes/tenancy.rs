//! Takes one slot and the term it is granted under; gives what is worked there a beginning and an
//! end, in that order: what is granted anew waits until the former work is gone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id};

use super::directory::Afresh;
use crate::model::{SubscriptionId, Tenure, Timestamp};
use crate::ownership::Term;
use crate::pipeline::context::Context;
use crate::pipeline::lane::Groups;
use crate::pipeline::stop::{Stop, Stopper, stop};
use crate::port::EpochGrant;

/// A term, and what all lanes worked under it share.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) term: Term,
    pub(super) groups: Arc<Groups>,
}

impl Grant {
    pub(super) fn new(context: &Context, term: Term) -> Self {
        Self { groups: Arc::new(Groups::new(context, term.epoch)), term }
    }
}

/// Whoever waits for slots to be given up; told when the last of them drops it.
pub(super) type Awaited = Arc<oneshot::Sender<()>>;

/// What is worked in one slot.
pub(super) struct Tenancy {
    pub(super) grant: Grant,
    /// Subscriptions whose lanes began anew since, under a later epoch each.
    renewed: BTreeMap<SubscriptionId, Grant>,
    /// Its queue is listened to.
    pub(super) listens: bool,
    phase: Phase,
    /// Ends its consumer.
    stopper: Stopper,
    stop: Stop,
    /// Its lanes and its consumer.
    tasks: HashMap<Id, AbortHandle>,
    /// Granted while it was held: begins once nothing of the former work is left.
    next: Option<Grant>,
    awaited: Vec<Awaited>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Works,
    /// Takes no more work and finishes what is in flight, until then.
    Drains(Timestamp),
    /// Everything is dropped; the tasks only have to notice.
    Ends,
}

impl Tenancy {
    /// A slot whose work begins.
    pub(super) fn begin(grant: Grant) -> Self {
        let (stopper, stop) = stop();
        let (tasks, awaited) = (HashMap::new(), Vec::new());
        let (renewed, phase) = (BTreeMap::new(), Phase::Works);
        let (listens, next) = (false, None);
        Self { grant, renewed, listens, phase, stopper, stop, tasks, next, awaited }
    }

    /// What the lanes of a subscription are worked under.
    pub(super) fn grant_of(&self, subscription: SubscriptionId) -> &Grant {
        self.renewed.get(&subscription).unwrap_or(&self.grant)
    }

    /// Has the lanes of a subscription that start from now on worked under an epoch of their own;
    /// tells whether it is later than the one before.
    pub(super) fn renew(
        &mut self,
        context: &Context,
        subscription: SubscriptionId,
        drawn: EpochGrant,
        afresh: Afresh,
    ) -> bool {
        let before = &self.grant_of(subscription).term;
        if drawn.epoch <= before.epoch {
            return false;
        }
        let tenure = match afresh {
            // Since the slot was taken everything was stored before anything else was begun.
            Afresh::Renumbered => before.tenure,
            Afresh::Failed | Afresh::Moved => Tenure { epoch: drawn.epoch, taken_at: drawn.at },
        };
        let term = before.under(tenure, drawn.epoch);
        self.renewed.insert(subscription, Grant::new(context, term));
        true
    }

    /// Forgets a subscription that is gone.
    pub(super) fn forget(&mut self, subscription: SubscriptionId) {
        self.renewed.remove(&subscription);
    }

    /// What ends its consumer.
    pub(super) fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Whether lanes may be started.
    pub(super) fn works(&self) -> bool {
        self.phase == Phase::Works
    }

    /// Whether nothing is left of it.
    pub(super) fn is_over(&self) -> bool {
        !self.works() && self.tasks.is_empty()
    }

    /// Whether this is what it works by already, or older.
    pub(super) fn knows(&self, grant: &Grant) -> bool {
        self.works() && grant.term.epoch <= self.grant.term.epoch
    }

    pub(super) fn took_up(&mut self, task: AbortHandle) {
        self.tasks.insert(task.id(), task);
    }

    pub(super) fn ended(&mut self, task: Id) {
        self.tasks.remove(&task);
    }

    /// Takes no more work; lanes are told by whoever knows them.
    pub(super) fn drain(&mut self, until: Timestamp, awaited: &Awaited) {
        self.next = None;
        self.awaited.push(Arc::clone(awaited));
        match self.phase {
            Phase::Works => {
                self.phase = Phase::Drains(until);
                self.stopper.stop();
            }
            Phase::Drains(before) => self.phase = Phase::Drains(before.min(until)),
            Phase::Ends => {}
        }
    }

    /// Whether it has had its time to drain.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        matches!(self.phase, Phase::Drains(until) if until <= now)
    }

    /// Drops everything: requests in flight too, their outcome unknown.
    pub(super) fn end(&mut self, next: Option<Grant>) {
        self.next = next;
        self.phase = Phase::Ends;
        self.tasks.values().for_each(AbortHandle::abort);
    }

    /// What begins where nothing of this is left.
    pub(super) fn into_next(self) -> Option<Grant> {
        self.next
    }
}
