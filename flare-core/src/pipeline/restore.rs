//! Takes a queue that is missing; gives it, made once however many workers miss it at the same time.
//! One that was there before comes back with a message that says that whatever was in it is lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tracing::{debug, warn};

use super::context::Context;
use super::task::Task;
use crate::error::Result;
use crate::port::{Outgoing, QueueExt, QueueName};

/// Above this many queues those nobody waits for are forgotten.
const MANY: usize = 1_024;
/// Above this many queues all are forgotten: one that is missing then counts as new, once.
const VERY_MANY: usize = 65_536;

/// What became of the last attempt at a queue, and when (of the monotonic clock) it ended.
type Attempt = Option<(Duration, Result<()>)>;

/// The queues there were, and those that were made again.
#[derive(Debug, Default)]
pub(crate) struct Restorer {
    /// Queues that were used: if one of them is missing, somebody took it away.
    seen: RwLock<HashSet<QueueName>>,
    /// Whoever makes a queue holds its lock.
    attempts: Mutex<HashMap<QueueName, Arc<tokio::sync::Mutex<Attempt>>>>,
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

    fn attempt(&self, queue: &QueueName) -> Arc<tokio::sync::Mutex<Attempt>> {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() >= MANY {
            attempts.retain(|_, attempt| Arc::strong_count(attempt) > 1);
        }
        Arc::clone(attempts.entry(queue.clone()).or_default())
    }
}

impl Context {
    /// Makes a queue again that was not found by a request which began at `asked`.
    pub(crate) async fn restore(&self, queue: &QueueName, asked: Duration) -> Result<()> {
        let attempt = self.restorer.attempt(queue);
        let mut attempt = attempt.lock().await;
        match &*attempt {
            // What was missing then has been seen to since.
            Some((ended, outcome)) if *ended >= asked => return outcome.clone(),
            _ => {}
        }
        let made = self.make_again(queue).await;
        *attempt = Some((self.clock.monotonic(), made.clone()));
        made
    }

    async fn make_again(&self, queue: &QueueName) -> Result<()> {
        let vanished = self.restorer.has_seen(queue);
        self.queue.create(queue).await?;
        self.restorer.saw(queue);
        if !vanished {
            debug!(%queue, "made a queue");
            return Ok(());
        }
        warn!(%queue, "a missing queue was made again; what was in it is found in the stores");
        let lost = Outgoing::new(Task::Restored.encode()?);
        self.queue.send_all(queue, vec![lost]).await.into_iter().collect()
    }
}
