//! Listens to the queue of a slot, or of one lane, and passes what it says on to the lanes it is about, or
//! to the loop that knows which lanes there are. Waits for no lane: what one makes of it is its own
//! affair, so a wake-up is settled as soon as it is heard and no lane holds up another in their queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::directory::Directory;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{LaneId, Placement, SubscriptionId};
use crate::pipeline::context::Context;
use crate::pipeline::stage::TaskSource;
use crate::pipeline::stop::Stop;
use crate::port::QueueName;
use crate::port::task::Task;

/// Which queue is listened to.
#[derive(Debug, Clone, Copy)]
pub(super) enum WakeQueue {
    Slot(u32),
    Lane(LaneId),
}

impl From<WakeQueue> for QueueName {
    fn from(queue: WakeQueue) -> Self {
        match queue {
            WakeQueue::Slot(slot) => Self::Slot(slot),
            WakeQueue::Lane(lane) => Self::Lane(lane),
        }
    }
}

/// Listens to one queue.
#[derive(Clone)]
pub(super) struct WakeListener {
    context: Arc<Context>,
    directory: Arc<Directory>,
    /// Where changes of subscriptions are told.
    changed: mpsc::Sender<SubscriptionId>,
    queue: WakeQueue,
}

impl WakeListener {
    pub(super) fn new(
        context: &Arc<Context>,
        directory: &Arc<Directory>,
        changed: &mpsc::Sender<SubscriptionId>,
        queue: WakeQueue,
    ) -> Self {
        let (context, directory) = (Arc::clone(context), Arc::clone(directory));
        Self { context, directory, changed: changed.clone(), queue }
    }

    /// Listens until told to stop.
    pub(super) async fn listen(self, stop: Stop) {
        let pulse = self.context.pulse("wake");
        let (directory, queue) = (Arc::clone(&self.directory), self.queue);
        // Lanes that cannot be woken look for themselves.
        let source = TaskSource::new(Arc::clone(&self.context), queue.into())
            .when_deaf(move || directory.wake_all(queue));
        source.consume(pulse, stop, async move |tasks: Vec<Task>| self.all(tasks).await).await;
    }

    /// Listens for as long as the lane is worked, and no longer than it takes more work.
    pub(super) async fn listen_while(self, stop: Stop, worked: impl Future<Output = ()>) {
        let listen = async {
            self.listen(stop).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = worked => {}
            () = listen => {}
        }
    }

    /// Whatever was in the queue is lost: lanes look for themselves, and note that it happened if
    /// it is the queue they are woken by. With a slot's queue, changes of subscriptions are lost as well.
    fn restored(&self) {
        if let WakeQueue::Slot(_) = self.queue {
            self.directory.miss_changes();
        }
        match (self.queue, self.context.settings.placement) {
            (WakeQueue::Slot(_), Placement::Isolated) => self.directory.wake_all(self.queue),
            _ => self.directory.restored(self.queue, self.context.now()),
        }
    }

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
                self.restored();
                return Ok(());
            }
            _ => {
                let error = Error::new(ErrorKind::Internal, "wake");
                return Err(error.with_detail("another stage's task"));
            }
        };
        for subscription in unknown {
            let told = self.changed.send(subscription).await;
            told.map_err(|_| {
                Error::new(ErrorKind::Unavailable, "wake").with_detail("lanes are ending")
            })?;
        }
        Ok(())
    }
}
