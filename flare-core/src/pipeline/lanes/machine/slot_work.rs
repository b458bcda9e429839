//! What is worked in one slot, from its grant to its end: what is granted anew waits until the former work
//! is gone.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Epoch, SubscriptionId, Takeover, Timestamp};

/// Under which epoch lanes are worked, and since which take-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline::lanes) struct WorkEpoch {
    /// What effects are stored under. Later than the take-over's if lanes began anew meanwhile.
    pub(in crate::pipeline::lanes) epoch: Epoch,
    pub(in crate::pipeline::lanes) takeover: Takeover,
}

impl WorkEpoch {
    /// That of lanes that begin with a take-over.
    pub(super) fn of(takeover: Takeover) -> Self {
        Self { epoch: takeover.epoch, takeover }
    }
}

/// What is worked in one slot.
#[derive(Debug)]
pub(super) struct SlotWork<T, D> {
    pub(super) term: T,
    epoch: WorkEpoch,
    /// Subscriptions whose lanes began anew since, under a later epoch each.
    renewed: BTreeMap<SubscriptionId, WorkEpoch>,
    phase: Phase,
    /// Who listens to its queue.
    pub(super) listener: Option<u64>,
    /// Its lanes and its listener.
    pub(super) tasks: BTreeSet<u64>,
    /// Granted while it was held: begins once nothing of the former work is left.
    next: Option<(T, WorkEpoch)>,
    /// Tell the cluster that it is given up, when they are dropped.
    done: Vec<D>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Works,
    /// Takes no more work and finishes what is in flight, until then.
    Drains(Timestamp),
    /// Everything is dropped; the tasks only have to notice.
    Ends,
}

impl<T, D> SlotWork<T, D> {
    /// A slot whose work begins.
    pub(super) fn begin(term: T, epoch: WorkEpoch) -> Self {
        let (renewed, tasks, done) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let phase = Phase::Works;
        Self { term, epoch, renewed, phase, listener: None, tasks, next: None, done }
    }

    /// What the lanes of a subscription are worked under.
    pub(super) fn epoch_of(&self, subscription: SubscriptionId) -> WorkEpoch {
        self.renewed.get(&subscription).copied().unwrap_or(self.epoch)
    }

    /// Has the lanes of a subscription that start from now on worked under an epoch of their own.
    pub(super) fn renew(&mut self, subscription: SubscriptionId, epoch: WorkEpoch) {
        self.renewed.insert(subscription, epoch);
    }

    /// Forgets a subscription that is gone.
    pub(super) fn forget(&mut self, subscription: SubscriptionId) {
        self.renewed.remove(&subscription);
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
    pub(super) fn knows(&self, granted: WorkEpoch) -> bool {
        self.works() && granted.epoch <= self.epoch.epoch
    }

    /// Takes no more work; tells whether it did until now.
    pub(super) fn drain(&mut self, until: Timestamp, done: D) -> bool {
        self.next = None;
        self.done.push(done);
        let worked = self.works();
        match self.phase {
            Phase::Works => self.phase = Phase::Drains(until),
            Phase::Drains(before) => self.phase = Phase::Drains(before.min(until)),
            Phase::Ends => {}
        }
        worked
    }

    /// Whether it has had its time to drain.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        matches!(self.phase, Phase::Drains(until) if until <= now)
    }

    /// Everything is dropped: requests in flight too, their outcome unknown.
    pub(super) fn end(&mut self, next: Option<(T, WorkEpoch)>) {
        self.next = next;
        self.phase = Phase::Ends;
    }

    /// What begins where nothing of this is left.
    pub(super) fn into_next(self) -> Option<(T, WorkEpoch)> {
        self.next
    }
}
