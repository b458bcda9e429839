//! Takes who waits for which queue; wakes them when there may be something for them: at once for
//! what this process does, within a poll for what others do. One query asks for all who wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flare_core::Result;
use flare_core::port::QueueName;
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::debug;

use super::schema::MESSAGES;
use crate::connection::Connection;
use crate::record;

/// Queues that one query asks for.
const MOST_PER_QUERY: usize = 10_000;

/// A bell for each queue that somebody waits for.
#[derive(Debug)]
pub(super) struct Bells {
    connection: Connection,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bells: HashMap<String, Bell>,
    /// The task that polls; runs only while somebody waits.
    poller: Option<AbortHandle>,
}

#[derive(Debug, Default)]
struct Bell {
    rung: Arc<Notify>,
    listeners: usize,
}

/// Somebody who waits for a queue, until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    bells: Arc<Bells>,
    queue: String,
    rung: Arc<Notify>,
}

impl Listener {
    /// Told when there may be something to receive, or the queue was deleted.
    pub(super) fn rung(&self) -> &Notify {
        &self.rung
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.bells.lock();
        if let Some(bell) = state.bells.get_mut(&self.queue) {
            bell.listeners -= 1;
            if bell.listeners == 0 {
                state.bells.remove(&self.queue);
            }
        }
    }
}

impl Bells {
    pub(super) fn new(connection: Connection) -> Arc<Self> {
        Arc::new(Self { connection, state: Mutex::default() })
    }

    /// Has the queue watched for as long as the listener is kept.
    pub(super) fn listen(self: &Arc<Self>, queue: &QueueName) -> Listener {
        let queue = queue.to_string();
        let mut state = self.lock();
        let bell = state.bells.entry(queue.clone()).or_default();
        bell.listeners += 1;
        let rung = Arc::clone(&bell.rung);
        // One that ended with its runtime counts as none.
        if state.poller.as_ref().is_none_or(AbortHandle::is_finished) {
            state.poller = Some(tokio::spawn(Arc::clone(self).poll()).abort_handle());
        }
        Listener { bells: Arc::clone(self), queue, rung }
    }

    /// Wakes those in this process who wait for the queue.
    pub(super) fn ring(&self, queue: &str) {
        if let Some(bell) = self.lock().bells.get(queue) {
            bell.rung.notify_waiters();
        }
    }

    async fn poll(self: Arc<Self>) {
        loop {
            self.connection.pause(self.connection.poll_every).await;
            let Some(queues) = self.listened_to() else { return };
            for some in queues.chunks(MOST_PER_QUERY) {
                match self.with_something_due(some).await {
                    Ok(due) => {
                        due.iter()
                            .filter_map(|it| it.get_str("_id").ok())
                            .for_each(|it| self.ring(it));
                    }
                    // Those who wait look for themselves at the end, and hear of it then.
                    Err(error) => debug!(%error, "could not ask which queues have messages"),
                }
            }
        }
    }

    /// The queues that somebody waits for. With none the poller ends: the next to wait starts one.
    fn listened_to(&self) -> Option<Vec<String>> {
        let mut state = self.lock();
        if state.bells.is_empty() {
            state.poller = None;
            return None;
        }
        Some(state.bells.keys().cloned().collect())
    }

    async fn with_something_due(&self, queues: &[String]) -> Result<Vec<Document>> {
        // The first of each queue, before its time is looked at: so the server skips from queue to
        // queue in the index, however much is in them.
        let pipeline = [
            doc! { "$match": { "queue": { "$in": queues } } },
            doc! { "$sort": { "queue": 1, "at": 1 } },
            doc! { "$group": { "_id": "$queue", "at": { "$first": "$at" } } },
            doc! { "$match": { "$expr": { "$lte": ["$at", record::now()] } } },
        ];
        let messages = self.connection.collection(MESSAGES);
        let due = async { messages.aggregate(pipeline).await?.try_collect().await };
        self.connection.run("poll", Box::pin(due)).await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
