//! The tasks of a node's lanes and of those who listen to their queues, by the numbers their machine knows
//! them by.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinSet};
use tracing::warn;

use super::directory::{Directory, ReachableLane};
use super::listener::{WakeListener, WakeQueue};
use super::machine::StartedLanes;
use crate::model::{Epoch, LaneId, Placement, SubscriptionId};
use crate::ownership::Term;
use crate::pipeline::context::Context;
use crate::pipeline::lane::{self, FormerLanes, Groups, HandedRows, Lane, Restored};
use crate::pipeline::stop::{Stopper, stop};

/// Lanes at work, and listeners.
pub(super) struct LaneTasks {
    context: Arc<Context>,
    directory: Arc<Directory>,
    change_sender: mpsc::Sender<SubscriptionId>,
    tasks: JoinSet<()>,
    numbers: HashMap<Id, u64>,
    aborts: HashMap<u64, AbortHandle>,
    listeners: HashMap<u64, Stopper>,
    /// What lanes that are worked under the same epoch share.
    groups: BTreeMap<Epoch, Weak<Groups>>,
}

impl LaneTasks {
    pub(super) fn new(
        context: &Arc<Context>,
        directory: &Arc<Directory>,
        change_sender: &mpsc::Sender<SubscriptionId>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            directory: Arc::clone(directory),
            change_sender: change_sender.clone(),
            tasks: JoinSet::new(),
            numbers: HashMap::new(),
            aborts: HashMap::new(),
            listeners: HashMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// Waits for the end of a task; tells which, and whether it failed. Those beside are none of these.
    pub(super) async fn next_end(&mut self) -> Option<(u64, bool)> {
        loop {
            let ended = self.tasks.join_next_with_id().await?;
            let (id, failed) = match &ended {
                Ok((id, ())) => (*id, false),
                Err(error) => (error.id(), error.is_panic()),
            };
            let Some(task) = self.numbers.remove(&id) else { continue };
            if let Err(error) = ended.as_ref()
                && failed
            {
                warn!(%error, "a lane, or what wakes it, failed; it starts again");
            }
            self.aborts.remove(&task);
            self.listeners.remove(&task);
            return Some((task, failed));
        }
    }

    /// Drops all of them.
    pub(super) async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Drops a task.
    pub(super) fn abort(&self, task: u64) {
        self.aborts.get(&task).into_iter().for_each(AbortHandle::abort);
    }

    /// Does something beside, of which the machine knows nothing.
    pub(super) fn beside(
        &mut self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        self.tasks.spawn(work)
    }

    fn begun(&mut self, task: u64, handle: AbortHandle) {
        self.numbers.insert(handle.id(), task);
        self.aborts.insert(task, handle);
    }

    /// Listens to a slot's queue after a while.
    pub(super) fn listen(&mut self, slot: u32, task: u64, after: Duration) {
        let (stopper, stop) = stop();
        self.listeners.insert(task, stopper);
        let listener = self.listener(WakeQueue::Slot(slot));
        let context = Arc::clone(&self.context);
        let handle = self.tasks.spawn(async move {
            if !after.is_zero() {
                context.sleep(after).await;
            }
            listener.listen(stop).await;
        });
        self.begun(task, handle);
    }

    /// Has a listener end.
    pub(super) fn stop_listening(&self, task: u64) {
        self.listeners.get(&task).into_iter().for_each(Stopper::stop);
    }

    fn listener(&self, queue: WakeQueue) -> WakeListener {
        WakeListener::new(&self.context, &self.directory, &self.change_sender, queue)
    }

    /// Has lanes worked, and their own queues listened to if they have some.
    pub(super) fn start(&mut self, started: StartedLanes<Term>) {
        // Read by the first of them for all.
        let former = FormerLanes::default();
        for (lane, task) in &started.lanes {
            self.start_one(*lane, *task, &started, former.clone());
        }
    }

    fn start_one(
        &mut self,
        id: LaneId,
        task: u64,
        started: &StartedLanes<Term>,
        former: FormerLanes,
    ) {
        let StartedLanes { slot, ref subscription, ref resource, moved, epoch, .. } = *started;
        let term = started.term.under(epoch.takeover, epoch.epoch);
        let (stopper, stop) = stop();
        let (updates, newest) = watch::channel(Arc::clone(subscription));
        let (restored, wake) = (Arc::<Restored>::default(), Arc::new(Notify::new()));
        let hold = self.directory.hold(id.subscription);
        let handed = Arc::<HandedRows>::default();
        let lane = Lane {
            context: Arc::clone(&self.context),
            id,
            slot,
            term: term.clone(),
            groups: self.groups(epoch.epoch),
            resource: Arc::clone(resource),
            subscription: Arc::clone(subscription),
            updates: newest,
            hold: Arc::clone(&hold),
            restored: Arc::clone(&restored),
            wake: Arc::clone(&wake),
            handed: Arc::clone(&handed),
            stop: stop.clone(),
            moved,
        };
        let lanes = subscription.spec.delivery().lanes();
        let worked = lane::run(lane, self.context.send_limit.clone(), former);
        let handle = match self.context.settings.placement {
            Placement::Shared => self.tasks.spawn(worked),
            Placement::Isolated => {
                let listener = self.listener(WakeQueue::Lane(id));
                self.tasks.spawn(listener.listen_while(stop, worked))
            }
        };
        self.begun(task, handle);
        let reachable =
            ReachableLane { slot, lanes, hold, restored, wake, handed, term, updates, stopper };
        self.directory.insert(id, reachable);
    }

    fn groups(&mut self, epoch: Epoch) -> Arc<Groups> {
        if let Some(groups) = self.groups.get(&epoch).and_then(Weak::upgrade) {
            return groups;
        }
        self.groups.retain(|_, groups| groups.strong_count() > 0);
        let groups = Arc::new(Groups::new(&self.context, epoch));
        self.groups.insert(epoch, Arc::downgrade(&groups));
        groups
    }
}
