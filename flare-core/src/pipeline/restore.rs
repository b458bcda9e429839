//! Takes a queue that has vanished; gives it back, made once however many workers miss it at the
//! same time, with a message that says that whatever was in it is lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::warn;

use super::context::Context;
use super::task::Task;
use crate::error::Result;
use crate::port::{Outgoing, QueueExt, QueueName};

/// Above this many queues those nobody waits for are forgotten.
const MANY: usize = 1_024;

/// What became of the last attempt at a queue, and when (of the monotonic clock) it ended.
type Attempt = Option<(Duration, Result<()>)>;

/// The queues that were made again. Whoever makes one holds its lock.
#[derive(Debug, Default)]
pub(crate) struct Restorer(Mutex<HashMap<QueueName, Arc<tokio::sync::Mutex<Attempt>>>>);

impl Restorer {
    fn attempt(&self, queue: &QueueName) -> Arc<tokio::sync::Mutex<Attempt>> {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.queue.create(queue).await?;
        warn!(%queue, "a missing queue was made again; what was in it is found in the stores");
        let lost = Outgoing::new(Task::Restored.encode()?);
        self.queue.send_all(queue, vec![lost]).await.into_iter().collect()
    }
}
