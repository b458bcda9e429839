//! The threads of an open file: one that writes, some that read, one that moves what is in the log to its
//! place. Each ends when it is told to, and with it whoever still waited for it learns so.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tracing::warn;

use super::commits::Commits;
use super::inbox::Inbox;
use super::job::Job;
use super::tx::AfterCommit;
use crate::time::Machine;

/// What one transaction takes on: beyond, whoever waits longest would wait too long.
const MOST_AT_A_TIME: usize = 8_192;
/// Records changed after which the log is worth moving, though less than a second has passed.
const WORTH_A_CHECKPOINT: u64 = 5_000;
/// How long what was written may stay in the log alone.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// Frames of the log beyond which it is begun anew, for which writing has to pause.
const LONG_LOG: i64 = 8_192;
/// How long writing pauses at most for those who still read from the log. One that reads for long, as a
/// backup does, is not waited for: the log grows until it has ended.
const READERS_WAITED_FOR: Duration = Duration::from_millis(20);
/// Pages given back at a time while nothing else is to be done.
const PAGES_AT_A_TIME: u32 = 64;

pub(super) type WriteInbox = Inbox<Box<dyn Job>>;
pub(super) type Read = Box<dyn FnOnce(&Connection, &Machine) + Send>;
pub(super) type ReadInbox = Inbox<Read>;

/// Closes an inbox when its last worker ends, in whichever way.
struct Closing<'a, J>(&'a Inbox<J>);

impl<J> Drop for Closing<'_, J> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Writes what waits, until the inbox is closed.
pub(super) fn write(
    inbox: &WriteInbox,
    mut commits: Commits,
    log: &Log,
    then: impl Fn(AfterCommit),
) {
    let _closing = Closing(inbox);
    let mut to_return = false;
    loop {
        let jobs = match inbox.take_now(MOST_AT_A_TIME) {
            Some(jobs) => jobs,
            None if to_return => {
                let _pause = log.writing();
                to_return = return_some(&mut commits);
                log.grew(commits.changes(), true);
                continue;
            }
            None => match inbox.take(MOST_AT_A_TIME) {
                Some(jobs) => jobs,
                None => return,
            },
        };
        // What need not wait for the disk goes first: nothing in a change's way to its clients waits for
        // another change's commit.
        let (durable, others): (Vec<_>, _) = jobs.into_iter().partition(|job| job.is_durable());
        for jobs in [others, durable] {
            if jobs.is_empty() {
                continue;
            }
            let before = commits.changes();
            let after = {
                let _pause = log.writing();
                commits.commit(jobs)
            };
            log.grew(commits.changes(), commits.changes() != before);
            to_return |= after.freed;
            then(after);
        }
    }
}

/// Gives some of the space back that nothing uses; tells whether there may be more.
fn return_some(commits: &mut Commits) -> bool {
    commits.return_space(PAGES_AT_A_TIME).unwrap_or_else(|error| {
        warn!(%error, "space that is not used could not be given back");
        false
    })
}

/// Gives all of it back, for whoever has nothing else to do.
pub(super) fn return_all(commits: &mut Commits) {
    while return_some(commits) {}
}

/// Reads what is asked for, until the inbox is closed.
pub(super) fn read(inbox: &ReadInbox, connection: &Connection, machine: &Machine) {
    while let Some(reads) = inbox.take(1) {
        reads.into_iter().for_each(|read| read(connection, machine));
    }
}

/// What the writer and whoever moves the log tell each other.
#[derive(Debug, Default)]
pub(super) struct Log {
    state: Mutex<Growth>,
    changed: Condvar,
    /// Held by whoever writes, while it does; taken by a checkpoint that needs nobody to.
    pause: Mutex<()>,
}

#[derive(Debug, Default)]
struct Growth {
    /// Records changed, ever and when the log was last moved.
    changes: u64,
    moved: u64,
    grew: bool,
    stopped: bool,
}

impl Log {
    fn writing(&self) -> MutexGuard<'_, ()> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Growth> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grew(&self, changes: u64, grew: bool) {
        let mut state = self.lock();
        state.changes = changes;
        let first = grew && !state.grew;
        state.grew |= grew;
        if first || changes - state.moved >= WORTH_A_CHECKPOINT {
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Has the checkpoints end.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until there is something worth moving; tells whether to.
    fn wait(&self) -> bool {
        let idle = |state: &mut Growth| !state.stopped && !state.grew;
        let state = self.lock();
        let state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        let little =
            |state: &mut Growth| !state.stopped && state.changes - state.moved < WORTH_A_CHECKPOINT;
        let waited = self.changed.wait_timeout_while(state, CHECKPOINT_EVERY, little);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.grew = false;
        state.moved = state.changes;
        !state.stopped
    }
}

/// Moves what is in the log to its place beside whoever writes, until it is told to stop. A log that has
/// grown long is begun anew, for which writing pauses: most of it has been moved by then.
pub(super) fn checkpoint(log: &Log, connection: &Connection) {
    if let Err(error) = connection.busy_timeout(READERS_WAITED_FOR) {
        warn!(%error, "the log is moved with pauses that may be long");
    }
    while log.wait() {
        let moved = move_log(connection, "PASSIVE").and_then(|frames| {
            if frames <= LONG_LOG {
                return Ok(frames);
            }
            let _pause = log.writing();
            move_log(connection, "RESTART")
        });
        if let Err(error) = moved {
            // The log keeps what is not moved; the next one tries again.
            warn!(%error, "the log could not be moved to its place");
        }
    }
}

/// One checkpoint; gives how many frames the log has.
fn move_log(connection: &Connection, mode: &str) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
    statement.query_row([], |row| row.get(1))
}

/// A thread of a name.
pub(super) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(format!("flare-sqlite-{name}")).spawn(work)
}
