//! Takes who waits for which queue; wakes them when there may be something for them: at once for
//! what this process does, within a poll for what others do. One query asks for all who wait, and
//! once a second another whether their queues are still there, so that a thousand who wait cost no
//! more than one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flare_core::Result;
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::debug;

use super::known::Known;
use super::schema::{MESSAGES, QUEUES};
use crate::connection::Connection;
use crate::record;
use crate::server_clock::Sight;

/// Queues that one query asks for.
const MOST_PER_QUERY: usize = 10_000;
/// Queues that are remembered as busy; others are looked at within a poll.
const MOST_BUSY: usize = 10_000;

/// A bell for each queue that somebody waits for.
#[derive(Debug)]
pub(super) struct Bells {
    connection: Connection,
    known: Arc<Known>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bells: HashMap<String, Bell>,
    /// The queues whose last receive found something: there may be more.
    busy: HashSet<String>,
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
    pub(super) fn new(connection: Connection, known: Arc<Known>) -> Arc<Self> {
        Arc::new(Self { connection, known, state: Mutex::default() })
    }

    /// Whether the last receive from the queue found something.
    pub(super) fn is_busy(&self, queue: &str) -> bool {
        self.lock().busy.contains(queue)
    }

    /// Notes whether a receive found something.
    pub(super) fn found(&self, queue: &str, something: bool) {
        let mut state = self.lock();
        if !something {
            state.busy.remove(queue);
        } else if !state.busy.contains(queue) && state.busy.len() < MOST_BUSY {
            state.busy.insert(queue.to_owned());
        }
    }

    /// Has the queue watched for as long as the listener is kept.
    pub(super) fn listen(self: &Arc<Self>, queue: &str) -> Listener {
        let queue = queue.to_owned();
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
            let Some(queues) = self.listened_to() else { return };
            for some in queues.chunks(MOST_PER_QUERY) {
                // Those who wait look for themselves at the end, and hear of it then.
                if let Err(error) = self.ring_those_due(some).await {
                    debug!(%error, "could not ask which queues have messages");
                }
                if let Err(error) = self.ring_those_missing(some).await {
                    debug!(%error, "could not ask which queues are there");
                }
            }
            self.connection.pause(self.connection.poll_every).await;
        }
    }

    async fn ring_those_due(&self, queues: &[String]) -> Result<()> {
        let due = self.with_something_due(queues).await?;
        due.iter().filter_map(|it| it.get_str("_id").ok()).for_each(|it| self.ring(it));
        Ok(())
    }

    /// Looks whether queues that were not seen lately are there; whoever waits for one that is not
    /// finds out by looking.
    async fn ring_those_missing(&self, queues: &[String]) -> Result<()> {
        let clock = &self.connection.clock;
        let asked = clock.monotonic();
        let unseen = |name: &&String| self.known.server_time(name, asked).is_none();
        let unseen: Vec<&String> = queues.iter().filter(unseen).collect();
        if unseen.is_empty() {
            return Ok(());
        }
        let records = self.connection.collection(QUEUES);
        let look = records.find(doc! { "_id": { "$in": &unseen } });
        let look = look.projection(doc! { "now": record::now() });
        let there = self.connection.all("poll", look, |record| {
            Ok((record.text("_id")?.to_owned(), record.number("now")?))
        });
        let there: HashMap<String, i64> = there.await?.into_iter().collect();
        let answered = clock.monotonic();
        for name in unseen {
            match there.get(name) {
                Some(server) => self.known.saw(name, Sight { asked, answered, server: *server }),
                None => {
                    self.known.forget(name);
                    self.ring(name);
                }
            }
        }
        Ok(())
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
