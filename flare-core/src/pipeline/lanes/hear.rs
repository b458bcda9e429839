//! Takes what is said in the queue of a slot; gives it to the lanes it is about, or to whoever
//! knows which lanes there are. Waits for no lane: what one makes of it is its own affair.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::directory::Directory;
use crate::error::{Error, ErrorKind, Result};
use crate::model::SubscriptionId;
use crate::pipeline::task::Task;

/// Listens to one queue.
pub(super) struct Hear {
    pub(super) directory: Arc<Directory>,
    /// Where news of subscriptions go.
    pub(super) tell: mpsc::Sender<SubscriptionId>,
    /// Whose queue it is.
    pub(super) slot: u32,
}

impl Hear {
    pub(super) async fn all(&self, tasks: Vec<Task>) -> Vec<Result<()>> {
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
                self.directory.wake_slot(self.slot);
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
