//! Takes a queue that is missing; gives it, made once however many workers miss it at the same time.
//! One that was there before comes back with a message that says that whatever was in it is lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tracing::{debug, warn};

use super::context::Context;
use crate::error::Result;
use crate::model::SubscriptionStatus;
use crate::port::task::Task;
use crate::port::{Outgoing, QueueExt, QueueName};
use crate::tools::lock;

/// Above this many queues those that no task waits for are forgotten.
const MANY: usize = 1_024;
/// Above this many queues all are forgotten: one that is missing then counts as new, once.
const VERY_MANY: usize = 65_536;

/// What became of the last attempt at a queue, and when (of the monotonic clock) it ended.
type RestoreAttempt = Option<(Duration, Result<Made>)>;

/// What became of a queue that was missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// It is there again.
    There,
    /// It belonged to a subscription that is gone: it is not needed.
    NotNeeded,
}

/// The queues there were, and those that were made again.
#[derive(Debug, Default)]
pub(crate) struct Restorer {
    /// Queues that were used: if one of them is missing, it was taken away.
    seen: RwLock<HashSet<QueueName>>,
    queues: Mutex<HashMap<QueueName, Arc<RestoredQueue>>>,
}

/// A queue that may vanish, and come back.
#[derive(Debug, Default)]
pub(crate) struct RestoredQueue {
    /// The task that makes it holds the lock.
    attempt: tokio::sync::Mutex<RestoreAttempt>,
    made: Notify,
}

impl RestoredQueue {
    /// Waits until it is made again. A listener to its messages waited where they do not come.
    pub(crate) async fn is_made(&self) {
        self.made.notified().await;
    }
}

impl Restorer {
    /// A queue is there.
    pub(crate) fn saw(&self, queue: &QueueName) {
        if !self.has_seen(queue) {
            let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
            if seen.len() >= VERY_MANY {
                seen.clear();
            }
            seen.insert(queue.clone());
        }
    }

    fn has_seen(&self, queue: &QueueName) -> bool {
        self.seen.read().unwrap_or_else(PoisonError::into_inner).contains(queue)
    }

    pub(crate) fn of(&self, queue: &QueueName) -> Arc<RestoredQueue> {
        let mut queues = lock(&self.queues);
        if queues.len() >= MANY {
            queues.retain(|_, restored| Arc::strong_count(restored) > 1);
        }
        Arc::clone(queues.entry(queue.clone()).or_default())
    }
}

impl Context {
    /// Makes a queue again that was not found by a request which began at `asked`.
    pub(crate) async fn restore(&self, queue: &QueueName, asked: Duration) -> Result<Made> {
        let restored = self.restorer.of(queue);
        let mut attempt = restored.attempt.lock().await;
        match &*attempt {
            // What was missing then has been seen to since.
            Some((ended, outcome)) if *ended >= asked => return outcome.clone(),
            _ => {}
        }
        let made = self.make_again(queue, &restored).await;
        *attempt = Some((self.clock.monotonic(), made.clone()));
        made
    }

    async fn make_again(&self, queue: &QueueName, restored: &RestoredQueue) -> Result<Made> {
        let vanished = self.restorer.has_seen(queue);
        // A worker that was frozen misses the queues of what was removed meanwhile.
        if !self.is_needed(queue).await? {
            return Ok(Made::NotNeeded);
        }
        self.queue.create(queue).await?;
        // The removal of a subscription marks it, then looks for its queues; we look for the mark
        // after making one: one of us sees the other. Expiry finds what we make and die before we look.
        match self.is_needed(queue).await {
            Ok(true) => {}
            Ok(false) => {
                self.queue.delete(queue).await?;
                return Ok(Made::NotNeeded);
            }
            Err(error) => {
                // The next that misses it makes it again, and sees.
                self.queue.delete(queue).await?;
                return Err(error);
            }
        }
        self.restorer.saw(queue);
        restored.made.notify_waiters();
        if !vanished {
            debug!(%queue, "made a queue");
            return Ok(Made::There);
        }
        warn!(%queue, "a missing queue was made again; what was in it is found in the stores");
        let lost = Outgoing::new(Task::Restored.encode()?);
        self.queue.send_all(queue, vec![lost]).await.into_iter().collect::<Result<()>>()?;
        Ok(Made::There)
    }

    /// Whether anybody is there whose queue it is.
    async fn is_needed(&self, queue: &QueueName) -> Result<bool> {
        let QueueName::Lane(lane) = queue else { return Ok(true) };
        let found = self.repository.subscription(lane.subscription).await?;
        Ok(found.is_some_and(|found| found.status != SubscriptionStatus::Deleting))
    }
}
