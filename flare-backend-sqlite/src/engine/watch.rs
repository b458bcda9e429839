//! Looks for what other processes do to the file: a message for somebody who waits here, a key of the
//! coordination, a holder that died. One look for all, however many wait; none while no other holder is
//! there.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use flare_core::port::QueueName;
use rusqlite::Connection;
use tracing::{debug, warn};

use super::{Effort, Shared};
use crate::holders;
use crate::lease;
use crate::queue;
use crate::time::StoreClock;

/// How often to look.
const EVERY: Duration = Duration::from_millis(100);

/// What tells the thread that looks when to end.
#[derive(Debug, Default)]
pub(super) struct Watch {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Watch {
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Lets some time pass; tells whether to go on.
    fn pause(&self) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(stopped, EVERY, |stopped| !*stopped);
        let (stopped, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*stopped
    }
}

/// What was seen at the last look.
#[derive(Debug, Default)]
struct Seen {
    /// Changes with every commit of any other connection.
    version: Option<i64>,
    /// The other holders of the file.
    others: Vec<Other>,
    /// How far the history of keys was.
    revision: i64,
    /// Whether the last look saw a message that was not due yet.
    later: bool,
}

#[derive(Debug, Clone)]
struct Other {
    n: i64,
    name: String,
}

/// Looks until it is told to stop.
pub(super) fn run(shared: &Shared, connection: &Connection) {
    let mut seen = Seen::default();
    while shared.watch.pause() {
        if let Err(error) = look(shared, connection, &mut seen) {
            debug!(%error, "could not look for what others do");
        }
    }
}

fn look(shared: &Shared, connection: &Connection, seen: &mut Seen) -> rusqlite::Result<()> {
    let mut version = connection.prepare_cached("PRAGMA data_version")?;
    let version = Some(version.query_row([], |row| row.get(0))?);
    let changed = version != seen.version;
    if changed {
        seen.others = others(connection, shared.holder)?;
    }
    if !seen.others.is_empty() {
        for dead in seen.others.iter().filter(|other| !holders::lives(&shared.place, &other.name)) {
            bury(shared, dead);
        }
        if changed || seen.later {
            seen.later = ring(shared, connection)?;
        }
        if changed {
            let revision = lease::revision(connection)?;
            if revision != seen.revision {
                seen.revision = revision;
                shared.signals.keys.notify_waiters();
            }
        }
    }
    seen.version = version;
    Ok(())
}

fn others(connection: &Connection, own: i64) -> rusqlite::Result<Vec<Other>> {
    let mut find = connection.prepare_cached("SELECT n, name FROM holders WHERE n <> ?1")?;
    find.query_map([own], |row| Ok(Other { n: row.get(0)?, name: row.get(1)? }))?.collect()
}

/// Ends what a dead holder held, so that nobody waits for its time.
fn bury(shared: &Shared, dead: &Other) {
    let (n, name, place) = (dead.n, dead.name.clone(), shared.place.clone());
    let ended = shared.write_unheard(Effort::durable("bury").urgent(), move |tx| {
        // It may have been buried, and its name is never used again.
        if lease::end_holder(tx.connection, n)? {
            tx.after.keys = true;
        }
        tx.after.rung.extend(queue::give_back(tx.connection, n, tx.now)?);
        holders::bury(&place, &name);
        Ok(())
    });
    if let Err(error) = ended {
        warn!(%error, "a holder that died could not be forgotten");
    }
}

/// Rings for queues in which something can be received; tells whether there is something for later.
fn ring(shared: &Shared, connection: &Connection) -> rusqlite::Result<bool> {
    if !shared.signals.bells.are_heard() {
        return Ok(false);
    }
    let ahead =
        connection.prepare_cached("SELECT ahead FROM store")?.query_row([], |row| row.get(0))?;
    let now = StoreClock { ahead }.at(shared.machine.uptime()).unix_nanos();
    let mut later = false;
    for (name, at) in queue::first_of_each(connection)? {
        if at > now {
            later = true;
        } else if let Ok(name) = name.parse::<QueueName>() {
            shared.signals.bells.ring(&name);
        }
    }
    Ok(later)
}
