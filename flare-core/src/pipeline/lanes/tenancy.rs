//! Takes one slot and the term it is granted under; gives what is worked there a beginning and an
//! end, in that order: what is granted anew waits until the former work is gone.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id};

use crate::model::Timestamp;
use crate::pipeline::context::Context;
use crate::pipeline::lane::Groups;
use crate::pipeline::stop::{Stop, Stopper, stop};
use crate::pipeline::term::Term;

/// A term, and what all lanes worked under it share.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) term: Term,
    pub(super) groups: Arc<Groups>,
}

impl Grant {
    pub(super) fn new(context: &Context, term: Term) -> Self {
        Self { groups: Arc::new(Groups::new(context, term.tenure.epoch)), term }
    }
}

/// Whoever waits for slots to be given up; told when the last of them drops it.
pub(super) type Awaited = Arc<oneshot::Sender<()>>;

/// What is worked in one slot.
pub(super) struct Tenancy {
    pub(super) grant: Grant,
    phase: Phase,
    /// Ends its consumer.
    stopper: Stopper,
    stop: Stop,
    /// Its couriers and its consumer.
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
        Self { grant, phase: Phase::Works, stopper, stop, tasks, next: None, awaited }
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
        self.works() && grant.term.tenure.epoch <= self.grant.term.tenure.epoch
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
        if self.works() {
            self.phase = Phase::Drains(until);
            self.stopper.stop();
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
