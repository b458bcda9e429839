//! The tables of the coordination: leases, keys, and the history that watches follow. Plain functions on a
//! connection, within whoever's transaction.

use std::time::Duration;

use flare_core::ErrorKind;
use flare_core::port::{Entry, KeyChange, KeyEvent, LeaseId, Snapshot, StoreRevision, Write};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error;
use crate::fault::Worked;
use crate::time::nanos;

/// Changes that watches can resume over, at least.
const HISTORY: i64 = 10_000;
/// How often older ones are forgotten.
const FORGET_EVERY: i64 = 256;
/// Events of one read.
const PAGE: usize = 1_000;

/// How far history is.
pub(crate) fn revision(connection: &Connection) -> rusqlite::Result<i64> {
    let mut read = connection.prepare_cached("SELECT revision FROM lease_history")?;
    read.query_row([], |row| row.get(0))
}

pub(super) fn read_revision(number: i64) -> StoreRevision {
    StoreRevision::new(number.unsigned_abs())
}

/// The next point in history. What is too old to be resumed over is forgotten now and then.
fn next_revision(connection: &Connection) -> rusqlite::Result<i64> {
    let mut next = connection
        .prepare_cached("UPDATE lease_history SET revision = revision + 1 RETURNING revision")?;
    let next: i64 = next.query_row([], |row| row.get(0))?;
    if next % FORGET_EVERY == 0 && next > HISTORY {
        let until = next - HISTORY;
        connection
            .prepare_cached("DELETE FROM lease_events WHERE revision <= ?1")?
            .execute([until])?;
        connection.prepare_cached("UPDATE lease_history SET forgotten = ?1")?.execute([until])?;
    }
    Ok(next)
}

/// Refuses a holder that was taken for dead: somebody removed its lock.
pub(super) fn check_holder(connection: &Connection, holder: i64) -> Worked<()> {
    let mut find = connection.prepare_cached("SELECT 1 FROM holders WHERE n = ?1")?;
    if find.exists([holder])? {
        return Ok(());
    }
    let detail = "the lock that proves this process alive was removed: open the file again";
    Err(error::of(ErrorKind::Unavailable, "grant", detail).into())
}

/// Starts a lease; gives its number.
pub(super) fn grant(
    connection: &Connection,
    holder: i64,
    ttl: Duration,
    uptime: Duration,
) -> rusqlite::Result<i64> {
    let mut insert =
        connection.prepare_cached("INSERT INTO leases (holder, ttl, ends) VALUES (?1, ?2, ?3)")?;
    insert.execute([holder, nanos(ttl), nanos(uptime.saturating_add(ttl))])?;
    Ok(connection.last_insert_rowid())
}

/// Starts a lease's time anew; gives that time, unless it has ended.
pub(super) fn keep_alive(
    connection: &Connection,
    lease: i64,
    uptime: Duration,
) -> rusqlite::Result<Option<Duration>> {
    let mut keep = connection
        .prepare_cached("UPDATE leases SET ends = ?2 + ttl WHERE n = ?1 RETURNING ttl")?;
    let ttl: Option<i64> = keep.query_row([lease, nanos(uptime)], |row| row.get(0)).optional()?;
    Ok(ttl.map(|ttl| Duration::from_nanos(ttl.unsigned_abs())))
}

pub(super) fn is_alive(connection: &Connection, lease: i64) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM leases WHERE n = ?1")?.exists([lease])
}

/// When the next lease lapses, by the machine's uptime.
pub(super) fn next_end(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("SELECT min(ends) FROM leases")?.query_row([], |row| row.get(0))
}

/// Ends a lease and its keys; tells whether it was alive.
pub(super) fn end(connection: &Connection, lease: i64) -> rusqlite::Result<bool> {
    let ended =
        connection.prepare_cached("DELETE FROM leases WHERE n = ?1")?.execute([lease])? == 1;
    let mut keys = connection.prepare_cached("SELECT key FROM lease_keys WHERE lease = ?1")?;
    let keys = keys.query_map([lease], |row| row.get(0))?;
    let keys: Vec<String> = keys.collect::<rusqlite::Result<_>>()?;
    for key in keys {
        delete(connection, &key)?;
    }
    Ok(ended)
}

/// Ends the leases that have lapsed, in the order in which they did; tells whether there were any.
pub(super) fn end_lapsed(connection: &Connection, uptime: i64) -> rusqlite::Result<bool> {
    end_those(connection, "SELECT n FROM leases WHERE ends <= ?1 ORDER BY ends, n", uptime)
}

/// Ends what a dead holder held, and forgets it; tells whether it held anything.
pub(crate) fn end_holder(connection: &Connection, holder: i64) -> rusqlite::Result<bool> {
    connection.prepare_cached("DELETE FROM holders WHERE n = ?1")?.execute([holder])?;
    end_those(connection, "SELECT n FROM leases WHERE holder = ?1 ORDER BY n", holder)
}

/// Ends all leases.
pub(crate) fn end_all(connection: &Connection) -> rusqlite::Result<()> {
    end_those(connection, "SELECT n FROM leases WHERE n > ?1 ORDER BY n", 0)?;
    Ok(())
}

fn end_those(connection: &Connection, which: &str, value: i64) -> rusqlite::Result<bool> {
    let mut find = connection.prepare_cached(which)?;
    let found = find.query_map([value], |row| row.get(0))?;
    let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
    for lease in &found {
        end(connection, *lease)?;
    }
    Ok(!found.is_empty())
}

/// Reads `key, value, created, revision, lease`.
fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let key: String = row.get(0)?;
    let value: Vec<u8> = row.get(1)?;
    let lease: Option<i64> = row.get(4)?;
    let (created, revision) = (read_revision(row.get(2)?), read_revision(row.get(3)?));
    Ok(Entry::new(key, value, created, revision, lease.map(LeaseId::new)))
}

pub(super) fn get(connection: &Connection, key: &str) -> rusqlite::Result<Option<Entry>> {
    let mut find = connection.prepare_cached(
        "SELECT key, value, created, revision, lease FROM lease_keys WHERE key = ?1",
    )?;
    find.query_row([key], entry).optional()
}

/// All keys under a prefix, and how far history is.
pub(super) fn list(connection: &Connection, prefix: &str) -> rusqlite::Result<Snapshot> {
    let mut find = connection.prepare_cached(
        "SELECT key, value, created, revision, lease FROM lease_keys WHERE key >= ?1 ORDER BY key",
    )?;
    let mut rows = find.query([prefix])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        if !row.get_ref(0)?.as_str()?.starts_with(prefix) {
            break;
        }
        entries.push(entry(row)?);
    }
    Ok(Snapshot::new(entries, read_revision(revision(connection)?)))
}

/// Writes a key that was found as it is; gives the revision.
pub(super) fn write(
    connection: &Connection,
    write: &Write,
    there: Option<&Entry>,
) -> rusqlite::Result<StoreRevision> {
    let revision = next_revision(connection)?;
    let created = there.map_or(revision, |entry| entry.created.get().cast_signed());
    let lease = write.lease.map(LeaseId::get);
    let (key, value) = (&write.key, &write.value[..]);
    let mut store = connection.prepare_cached(
        "INSERT INTO lease_keys (key, value, created, revision, lease) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision, \
         lease = excluded.lease",
    )?;
    store.execute(params![key, value, created, revision, lease])?;
    note(connection, revision, key, Some((value, created)), lease)?;
    Ok(read_revision(revision))
}

/// Deletes a key that is there.
pub(super) fn delete(connection: &Connection, key: &str) -> rusqlite::Result<()> {
    let revision = next_revision(connection)?;
    connection.prepare_cached("DELETE FROM lease_keys WHERE key = ?1")?.execute([key])?;
    note(connection, revision, key, None, None)
}

fn note(
    connection: &Connection,
    revision: i64,
    key: &str,
    written: Option<(&[u8], i64)>,
    lease: Option<i64>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO lease_events (revision, key, value, created, lease) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let (value, created) = (written.map(|(value, _)| value), written.map(|(_, created)| created));
    insert.execute(params![revision, key, value, created, lease])?;
    Ok(())
}

/// The events under a prefix after a revision, and how far they go.
pub(super) fn events_after(
    connection: &Connection,
    prefix: &str,
    from: i64,
) -> Worked<(Vec<KeyEvent>, i64)> {
    let mut history = connection.prepare_cached("SELECT revision, forgotten FROM lease_history")?;
    let (newest, forgotten): (i64, i64) =
        history.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if from < forgotten {
        let detail = format!("revision {from} is forgotten, history begins at {forgotten}");
        return Err(error::of(ErrorKind::Compacted, "watch", detail).into());
    }
    let mut find = connection.prepare_cached(
        "SELECT key, value, created, revision, lease FROM lease_events WHERE revision > ?1 \
         ORDER BY revision",
    )?;
    let mut rows = find.query([from])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        if !row.get_ref(0)?.as_str()?.starts_with(prefix) {
            continue;
        }
        let (number, key) = (row.get(3)?, row.get::<_, String>(0)?);
        let deleted = row.get_ref(1)?.as_blob_or_null()?.is_none();
        let kind = if deleted { KeyChange::Deleted } else { KeyChange::Written(entry(row)?) };
        events.push(KeyEvent::new(read_revision(number), key, kind));
        if events.len() == PAGE {
            return Ok((events, number));
        }
    }
    Ok((events, newest))
}
