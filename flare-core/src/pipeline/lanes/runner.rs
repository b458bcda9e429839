//! Works the lanes of a node: hands their machine what happens, and does what that says. Nothing is awaited
//! here but what comes next: a slow store delays changes of subscriptions, and none of ownership.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::warn;

use super::directory::Directory;
use super::handle::LanesHandle;
use super::leave::has_left;
use super::machine::{LaneSet, LanesCommand, LanesEvent, LanesMoment};
use super::queues::restore_missing;
use super::read::Reader;
use super::tasks::LaneTasks;
use crate::model::SubscriptionId;
use crate::ownership::{Released, SlotChange, Term};
use crate::pipeline::context::Context;
use crate::tools::taken;

/// Changes of subscriptions that wait to be read; when they are so many the slot's queue waits.
const CHANGES: usize = 256;

/// The lanes this runtime works.
pub(crate) struct Lanes {
    context: Arc<Context>,
    machine: LaneSet<Term, Released>,
    directory: Arc<Directory>,
    tasks: LaneTasks,
    /// What is being read from the stores.
    reading: Option<BoxFuture<'static, LanesEvent<Term, Released>>>,
    /// Sees whether all queues are there.
    checking: Option<AbortHandle>,
    /// Subscriptions that have changed.
    changed: mpsc::Receiver<SubscriptionId>,
    change_sender: mpsc::Sender<SubscriptionId>,
}

impl Lanes {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let (change_sender, changed) = mpsc::channel(CHANGES);
        let directory = Arc::default();
        context.near.are(&directory);
        Self {
            machine: LaneSet::new(context.slot_numbers(), context.settings.sweep_every),
            tasks: LaneTasks::new(&context, &directory, &change_sender),
            context,
            directory,
            reading: None,
            checking: None,
            changed,
            change_sender,
        }
    }

    /// A way to tell them of changes that come by other ways than the queues.
    pub(crate) fn handle(&self) -> LanesHandle {
        LanesHandle { changed: self.change_sender.clone(), directory: Arc::clone(&self.directory) }
    }

    /// Follows the ownership until its stream ends.
    pub(crate) async fn run(mut self, mut ownership: mpsc::Receiver<SlotChange>) {
        let (context, directory) = (Arc::clone(&self.context), Arc::clone(&self.directory));
        loop {
            let wakes_at = self.machine.wakes_at();
            let event = tokio::select! {
                biased;
                change = ownership.recv() => match change {
                    Some(change) => self.owned(change),
                    None => break,
                },
                () = directory.changes_missed() => LanesEvent::ChangesMissed,
                Some(id) = self.changed.recv(), if self.machine.takes_change() => LanesEvent::Changed(id),
                Some((task, failed)) = self.tasks.next_end() => LanesEvent::Ended { task, failed },
                read = taken(&mut self.reading) => read,
                () = context.store_clock.sleep_until(wakes_at) => LanesEvent::Rung,
            };
            self.take(event);
        }
        self.tasks.shutdown().await;
        self.context.progress.set_lanes(0);
    }

    /// A change as the machine takes it: by the store's time, within what a drain may take.
    fn owned(&self, change: SlotChange) -> LanesEvent<Term, Released> {
        LanesEvent::Slots(match change {
            SlotChange::Granted { slots, term } => {
                let takeover = term.takeover;
                SlotChange::Granted { slots, term: (term, takeover) }
            }
            SlotChange::Releasing { slots, until, done } => {
                let left = until.saturating_sub(self.context.clock.monotonic());
                let until = self.context.now() + left.min(self.context.drain_limit.get());
                SlotChange::Releasing { slots, until, done }
            }
            SlotChange::Lost { slots } => SlotChange::Lost { slots },
        })
    }

    /// Hands an event to the machine, and obeys.
    fn take(&mut self, event: LanesEvent<Term, Released>) {
        let context = Arc::clone(&self.context);
        let moment = LanesMoment {
            now: context.now(),
            random: context.random(),
            trusted: &|term: &Term, slot| term.is_trusted(slot, &*context.clock),
        };
        for command in self.machine.on(event, &moment) {
            self.obey(command);
        }
        self.context.progress.set_lanes(self.machine.lane_count());
        self.directory.set_slots(self.machine.slot_count());
    }

    fn obey(&mut self, command: LanesCommand<Term>) {
        match command {
            LanesCommand::Listen { slot, task, after } => self.tasks.listen(slot, task, after),
            LanesCommand::StopListening(task) => self.tasks.stop_listening(task),
            LanesCommand::Start(lanes) => self.tasks.start(lanes),
            LanesCommand::Update(subscription) => self.directory.update(&subscription),
            LanesCommand::Stop(lane) => self.directory.stop(lane),
            LanesCommand::Forget(lane) => self.directory.remove(lane),
            LanesCommand::Abort(task) => self.tasks.abort(task),
            LanesCommand::LogDropped => {
                warn!("requests still in flight are dropped; they are made again at the next start")
            }
            LanesCommand::StoreLeft(subscription) => {
                let context = Arc::clone(&self.context);
                self.tasks.beside(has_left(context, subscription, self.change_sender.clone()));
            }
            LanesCommand::ReadOne(id) => self.reading = Some(self.reader().one(id).boxed()),
            LanesCommand::ReadPage { slots, after } => {
                self.reading = Some(self.reader().page(slots, after).boxed());
            }
            LanesCommand::Prepare(lanes) => {
                self.reading = Some(self.reader().prepare(lanes).boxed());
            }
            LanesCommand::CheckQueues(slots) => self.check_queues(slots),
        }
    }

    fn reader(&self) -> Reader {
        Reader { context: Arc::clone(&self.context) }
    }

    /// Sees beside everything else that the queues are there that this runtime needs.
    fn check_queues(&mut self, slots: Vec<u32>) {
        if self.checking.as_ref().is_none_or(AbortHandle::is_finished) {
            let lanes = self.directory.lanes();
            let check = restore_missing(Arc::clone(&self.context), slots, lanes);
            self.checking = Some(self.tasks.beside(check));
        }
    }
}
