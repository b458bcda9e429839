//! Takes who waits for a queue or for keys; wakes them when there may be something for them: at once for what this
//! process does, within a poll for what others do, or by what their commits say if that is asked for. One query asks for all who wait, of queue and leases, so that a
//! thousand who wait cost no more than one. Remembers of which queues it is known that they hold nothing, so that
//! waiting once more costs nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::AbortHandle;
use tokio_postgres::Row;
use tracing::debug;

use crate::connection::{Database, Value};
use crate::fault::Worked;
use crate::notices;

const OPERATION: &str = "poll";
/// Polls that a queue is still asked about after the last listener has gone, who mostly comes back.
const LINGER: u8 = 5;

/// The queues among these that have something due, or are not there.
macro_rules! due {
    () => {
        "(SELECT array_agg(k.name) FROM (SELECT flare.now() AS now) t \
             CROSS JOIN unnest($1::text[]) k(name) LEFT JOIN flare.queues q ON q.name = k.name \
             WHERE q.n IS NULL OR EXISTS (SELECT 1 FROM flare.messages m \
                 WHERE m.queue = q.n AND m.at <= t.now))"
    };
}
/// How far the history of keys is, and how long until the next lease lapses.
macro_rules! history {
    () => {
        "(SELECT revision FROM flare.lease_history), \
         (SELECT min(ends) FROM flare.leases) - (SELECT flare.now())"
    };
}
const QUEUES: &str = concat!("SELECT ", due!(), ", NULL::bigint, NULL::bigint");
const KEYS: &str = concat!("SELECT NULL::text[], ", history!());
const BOTH: &str = concat!("SELECT ", due!(), ", ", history!());

/// What looks for everybody who waits.
#[derive(Debug)]
pub(crate) struct Pulse {
    database: Arc<Database>,
    state: Mutex<State>,
    /// Told when keys may have changed.
    keys: Notify,
    /// Whether to listen for what other processes send.
    notify: bool,
    /// What this process sends is said by this name, and is not news to it.
    sender: String,
}

#[derive(Debug, Default)]
struct State {
    bells: HashMap<String, Bell>,
    /// How many follow keys.
    watchers: usize,
    /// How far history was at the last look.
    revision: Option<i64>,
    /// The task that polls; runs only while somebody waits.
    poller: Option<AbortHandle>,
    listening: Listening,
}

/// Whether what other processes send is listened for.
#[derive(Debug, Default)]
enum Listening {
    #[default]
    NotYet,
    /// By this task, while somebody waits for a queue.
    By(AbortHandle),
    /// It was tried, and nothing is heard here.
    Never,
}

#[derive(Debug, Default)]
struct Bell {
    rung: Arc<Notify>,
    listeners: usize,
    /// Polls since the last of them went.
    alone: u8,
    /// How often it was rung.
    rings: u64,
    quiet: Option<Quiet>,
}

/// A queue had nothing to receive when it was looked at, and no poll has found anything since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quiet {
    /// When something in it is due, on this process's clock, if it was known to be.
    pub(crate) until: Option<Duration>,
}

/// Somebody who waits for a queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    pulse: Arc<Pulse>,
    queue: String,
    rung: Arc<Notify>,
}

/// Somebody who follows keys, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher(Arc<Pulse>);

/// What a look gave.
struct Seen {
    due: Vec<String>,
    revision: Option<i64>,
    /// How long until the next lease lapses, in nanoseconds.
    next_end: Option<i64>,
}

impl Listener {
    /// Told when there may be something to receive, or the queue was deleted.
    pub(crate) fn rung(&self) -> &Notify {
        &self.rung
    }

    /// What is known of the queue, if it is known to be empty.
    pub(crate) fn quiet(&self) -> Option<Quiet> {
        self.pulse.lock().bells.get(&self.queue).and_then(|bell| bell.quiet)
    }

    /// How often the bell was rung: for [`found_nothing`](Self::found_nothing).
    pub(crate) fn rings(&self) -> u64 {
        self.pulse.lock().bells.get(&self.queue).map_or(0, |bell| bell.rings)
    }

    /// Notes that the queue was looked at and has nothing until then, unless it was rung since `rings`.
    pub(crate) fn found_nothing(&self, rings: u64, until: Option<Duration>) {
        let mut state = self.pulse.lock();
        if let Some(bell) = state.bells.get_mut(&self.queue).filter(|bell| bell.rings == rings) {
            bell.quiet = Some(Quiet { until });
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(bell) = self.pulse.lock().bells.get_mut(&self.queue) {
            (bell.listeners, bell.alone) = (bell.listeners - 1, 0);
        }
    }
}

impl Watcher {
    /// Told when keys may have changed or a lease has lapsed, once it is enabled.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.0.keys.notified()
    }

    /// Has somebody poll, should the task that did have ended with its runtime.
    pub(crate) fn revive(&self) {
        self.0.beat(&mut self.0.lock());
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.lock().watchers -= 1;
    }
}

impl Pulse {
    /// Looks through these connections.
    pub(crate) fn new(database: Arc<Database>, notify: bool) -> Arc<Self> {
        let sender = format!("{:016x}", RandomState::new().build_hasher().finish());
        let mut state = State::default();
        if notify && database.is_pooled() {
            notices::say_pooled();
            state.listening = Listening::Never;
        }
        Arc::new(Self { database, state: Mutex::new(state), keys: Notify::new(), notify, sender })
    }

    /// Who sends, when messages of this process are said to be there.
    pub(crate) fn sender(&self) -> &str {
        &self.sender
    }

    /// Has the queue looked at for as long as the listener is kept.
    pub(crate) fn listen(self: &Arc<Self>, queue: &str) -> Listener {
        let queue = queue.to_owned();
        let mut state = self.lock();
        let bell = state.bells.entry(queue.clone()).or_default();
        bell.listeners += 1;
        let rung = Arc::clone(&bell.rung);
        self.beat(&mut state);
        self.begin_to_listen(&mut state);
        Listener { pulse: Arc::clone(self), queue, rung }
    }

    /// Has the keys looked at for as long as the watcher is kept.
    pub(crate) fn watch(self: &Arc<Self>) -> Watcher {
        let mut state = self.lock();
        state.watchers += 1;
        self.beat(&mut state);
        Watcher(Arc::clone(self))
    }

    /// Wakes those in this process who wait for the queue.
    pub(crate) fn ring(&self, queue: &str) {
        if let Some(bell) = self.lock().bells.get_mut(queue) {
            bell.ring();
        }
    }

    /// Wakes those in this process who wait for any queue.
    pub(crate) fn ring_all(&self) {
        self.lock().bells.values_mut().for_each(Bell::ring);
    }

    /// Takes what a commit said: a queue, and who sent messages to it if that was a process of Flare's.
    pub(crate) fn hear(&self, said: &str) {
        let (queue, sender) = said.split_once(' ').unwrap_or((said, ""));
        if sender != self.sender {
            self.ring(queue);
        }
    }

    /// Wakes those in this process who follow keys.
    pub(crate) fn keys_changed(&self) {
        self.keys.notify_waiters();
    }

    /// Starts to poll, unless it is done. A task that ended with its runtime counts as none.
    fn beat(self: &Arc<Self>, state: &mut State) {
        if state.poller.as_ref().is_none_or(AbortHandle::is_finished) {
            // What was known then may be long ago.
            state.bells.values_mut().for_each(|bell| bell.quiet = None);
            state.poller = Some(tokio::spawn(Arc::clone(self).poll()).abort_handle());
        }
    }

    /// Starts to listen, unless it is done, or not asked for, or in vain.
    fn begin_to_listen(self: &Arc<Self>, state: &mut State) {
        let idle = match &state.listening {
            Listening::NotYet => true,
            Listening::By(task) => task.is_finished(),
            Listening::Never => false,
        };
        if self.notify && idle {
            let this = Arc::clone(self);
            let listens = async move {
                notices::hear(&this.database, &this).await;
                this.lock().listening = Listening::Never;
            };
            state.listening = Listening::By(tokio::spawn(listens).abort_handle());
        }
    }

    async fn poll(self: Arc<Self>) {
        let every = self.database.poll_every;
        let mut pause = every;
        loop {
            self.database.clock.sleep(pause).await;
            let Some((queues, keys)) = self.waited_for() else { return };
            match self.database.attempts(OPERATION, || self.look(&queues, keys)).await {
                Ok(seen) => {
                    let end = seen.next_end.unwrap_or(i64::MAX).max(1_000_000).unsigned_abs();
                    pause = every.min(Duration::from_nanos(end));
                    self.tell(&seen);
                }
                Err(error) => {
                    debug!(%error, "could not ask what has changed");
                    pause = every;
                    self.know_nothing();
                }
            }
        }
    }

    async fn look(&self, queues: &Vec<String>, keys: bool) -> Worked<Seen> {
        let (sql, values): (_, &[&dyn Value]) = match (queues.is_empty(), keys) {
            (false, true) => (BOTH, &[queues]),
            (true, _) => (KEYS, &[]),
            (false, false) => (QUEUES, &[queues]),
        };
        let row = self.database.one(OPERATION, sql, values).await?;
        let read = |row: Row| -> Worked<Seen> {
            let due: Option<Vec<String>> = row.try_get(0)?;
            let (revision, next_end) = (row.try_get(1)?, row.try_get(2)?);
            Ok(Seen { due: due.unwrap_or_default(), revision, next_end })
        };
        row.map_or(Ok(Seen { due: Vec::new(), revision: None, next_end: None }), read)
    }

    fn tell(&self, seen: &Seen) {
        let mut state = self.lock();
        for queue in &seen.due {
            if let Some(bell) = state.bells.get_mut(queue) {
                bell.ring();
            }
        }
        let lapsed = seen.next_end.is_some_and(|end| end <= 0);
        let moved = seen.revision.is_some() && state.revision != seen.revision;
        state.revision = seen.revision.or(state.revision);
        drop(state);
        if lapsed || moved {
            self.keys_changed();
        }
    }

    /// The server was not to be asked: whoever waits for a queue looks at its end, and whoever follows keys now,
    /// and hears why.
    fn know_nothing(&self) {
        self.lock().bells.values_mut().for_each(|bell| bell.quiet = None);
        self.keys_changed();
    }

    /// The queues that somebody waits for, or did a moment ago, and whether somebody follows keys. With none the
    /// poller ends: the next to wait starts one.
    fn waited_for(&self) -> Option<(Vec<String>, bool)> {
        let mut state = self.lock();
        state.bells.retain(|_, bell| {
            bell.alone = if bell.listeners == 0 { bell.alone + 1 } else { 0 };
            bell.alone <= LINGER
        });
        if state.bells.is_empty()
            && let Listening::By(task) = &state.listening
        {
            task.abort();
            state.listening = Listening::NotYet;
        }
        if state.bells.is_empty() && state.watchers == 0 {
            state.poller = None;
            return None;
        }
        Some((state.bells.keys().cloned().collect(), state.watchers > 0))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    fn ring(&mut self) {
        (self.rings, self.quiet) = (self.rings + 1, None);
        self.rung.notify_waiters();
    }
}
