//! The tables of the coordination: leases, keys, and the history that watches follow. Plain functions on a
//! session; those that write are within a transaction that has the history to itself.

use flare_core::port::{
    Entry, Expect, KeyChange, KeyEvent, LeaseId, Snapshot, StoreRevision, Write,
};
use flare_core::{ErrorKind, Result};
use tokio_postgres::Row;

use super::NOTHING;
use crate::connection::{Session, Value};
use crate::error;
use crate::fault::Worked;

/// Changes that watches can resume over, at least.
const HISTORY: i64 = 10_000;
/// How often older ones are forgotten.
const FORGET_EVERY: i64 = 256;
/// Events of one read.
const PAGE: i64 = 1_000;

/// Begins a transaction that has the history to itself.
pub(super) const TURN: &str = "SELECT revision FROM flare.lease_history FOR UPDATE";

fn read_revision(number: i64) -> StoreRevision {
    StoreRevision::new(number.unsigned_abs())
}

/// How far history is.
pub(super) async fn revision(session: &mut Session<'_>) -> Worked<StoreRevision> {
    let row = session.query_opt("SELECT revision FROM flare.lease_history", NOTHING).await?;
    Ok(read_revision(row.map_or(Ok(0), |row| row.try_get(0))?))
}

/// Whether what is too old to be resumed over is forgotten now, as it is now and then.
pub(super) fn is_to_forget(revision: StoreRevision) -> bool {
    let revision = i64::try_from(revision.get()).unwrap_or(i64::MAX);
    revision % FORGET_EVERY == 0 && revision > HISTORY
}

/// Forgets what is too old to be resumed over.
pub(super) async fn forget_old(session: &mut Session<'_>) -> Worked<()> {
    const SQL: &str = "WITH h AS (UPDATE flare.lease_history SET forgotten = greatest(forgotten, revision - $1) \
             RETURNING forgotten) \
         DELETE FROM flare.lease_events e USING h WHERE e.revision <= h.forgotten";
    session.query(SQL, &[&HISTORY]).await?;
    Ok(())
}

async fn forget(session: &mut Session<'_>, revision: i64, before: i64) -> Worked<()> {
    if revision / FORGET_EVERY != before / FORGET_EVERY && revision > HISTORY {
        forget_old(session).await?;
    }
    Ok(())
}

/// What became of a write that was tried in one statement.
pub(super) enum AtOnce {
    Written(StoreRevision),
    Conflict(Option<Entry>),
    /// A lease has lapsed, or is not there: that is looked at first.
    Lapsed,
}

/// Writes each key, one after the other, as long as nothing stands against it, and ends the transaction, which has
/// the history to itself. One answer each.
pub(super) async fn write_at_once(
    session: &mut Session<'_>,
    writes: &[Write],
) -> Worked<Vec<AtOnce>> {
    const SQL: &str = "WITH t AS MATERIALIZED (SELECT \
             EXISTS (SELECT 1 FROM flare.leases WHERE ends <= (SELECT flare.now())) \
             OR ($3::bigint IS NOT NULL AND NOT EXISTS (SELECT 1 FROM flare.leases WHERE n = $3)) AS lapsed), \
         there AS MATERIALIZED (SELECT key, value, created, revision, lease FROM flare.lease_keys \
             WHERE key = $1), \
         ok AS MATERIALIZED (SELECT 1 FROM t WHERE NOT t.lapsed AND CASE $4::smallint WHEN 0 THEN true \
             WHEN 1 THEN NOT EXISTS (SELECT 1 FROM there) \
             ELSE EXISTS (SELECT 1 FROM there WHERE revision = $5) END), \
         h AS (UPDATE flare.lease_history SET revision = revision + 1 WHERE EXISTS (SELECT 1 FROM ok) \
             RETURNING revision), \
         w AS (INSERT INTO flare.lease_keys (key, value, created, revision, lease) \
             SELECT $1, $2, coalesce((SELECT created FROM there), h.revision), h.revision, $3 FROM h \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision, \
                 lease = excluded.lease), \
         told AS (INSERT INTO flare.lease_events (revision, key, value, created, lease) \
             SELECT h.revision, $1, $2, coalesce((SELECT created FROM there), h.revision), $3 FROM h) \
         SELECT there.key, there.value, there.created, there.revision, there.lease, t.lapsed, h.revision \
         FROM t LEFT JOIN there ON true LEFT JOIN h ON true";
    let bound: Vec<_> = writes.iter().map(bind).collect();
    let values: Vec<[&dyn Value; 5]> = bound
        .iter()
        .map(|(key, value, lease, kind, at)| -> [&dyn Value; 5] { [key, value, lease, kind, at] })
        .collect();
    let values: Vec<&[&dyn Value]> = values.iter().map(|values| &values[..]).collect();
    session.finish_each(SQL, &values).await?.iter().map(|rows| at_once(rows)).collect()
}

/// A write, as the statement takes it.
fn bind(write: &Write) -> (&str, &[u8], Option<i64>, i16, i64) {
    let (kind, at) = match write.expect {
        Expect::Anything => (0_i16, 0),
        Expect::Absent => (1, 0),
        Expect::At(revision) => (2, i64::try_from(revision.get()).unwrap_or(i64::MAX)),
    };
    (&write.key, &write.value[..], write.lease.map(LeaseId::get), kind, at)
}

/// What the statement says became of a write.
fn at_once(rows: &[Row]) -> Worked<AtOnce> {
    let Some(row) = rows.first() else { return Ok(AtOnce::Lapsed) };
    let (lapsed, written): (bool, Option<i64>) = (row.try_get(5)?, row.try_get(6)?);
    if let Some(revision) = written {
        return Ok(AtOnce::Written(read_revision(revision)));
    }
    if lapsed {
        return Ok(AtOnce::Lapsed);
    }
    let there = row.try_get::<_, Option<String>>(0)?.is_some().then(|| entry(row)).transpose()?;
    Ok(AtOnce::Conflict(there))
}

pub(super) async fn is_alive(session: &mut Session<'_>, lease: LeaseId) -> Worked<bool> {
    // It is not ended under this transaction's feet: whoever ends one waits for the history.
    const SQL: &str = "SELECT 1 FROM flare.leases WHERE n = $1";
    Ok(session.query_opt(SQL, &[&lease.get()]).await?.is_some())
}

/// Ends the leases that have lapsed, in the order in which they did.
pub(super) async fn end_lapsed(session: &mut Session<'_>) -> Worked<()> {
    const SQL: &str =
        "DELETE FROM flare.leases WHERE ends <= (SELECT flare.now()) RETURNING n, ends";
    let rows = session.query(SQL, NOTHING).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let read = |row: &Row| Ok((row.try_get(1)?, row.try_get(0)?));
    let lapsed = rows.iter().map(read);
    let mut lapsed =
        lapsed.collect::<std::result::Result<Vec<(i64, i64)>, tokio_postgres::Error>>()?;
    lapsed.sort_unstable();
    delete_keys_of(session, &lapsed.into_iter().map(|(_, lease)| lease).collect()).await
}

/// Ends leases and their keys.
pub(super) async fn end(session: &mut Session<'_>, leases: &Vec<i64>) -> Worked<()> {
    const SQL: &str = "DELETE FROM flare.leases WHERE n = ANY($1)";
    session.query(SQL, &[leases]).await?;
    delete_keys_of(session, leases).await
}

async fn delete_keys_of(session: &mut Session<'_>, leases: &Vec<i64>) -> Worked<()> {
    const SQL: &str = "SELECT k.key FROM unnest($1::bigint[]) WITH ORDINALITY l(n, i) \
         JOIN flare.lease_keys k ON k.lease = l.n ORDER BY l.i, k.key";
    let rows = session.query(SQL, &[leases]).await?;
    let keys = rows.iter().map(|row| row.try_get(0));
    let keys = keys.collect::<std::result::Result<Vec<String>, _>>()?;
    if keys.is_empty() {
        return Ok(());
    }
    delete(session, &keys).await
}

/// Deletes keys that are there, each as a revision of its own.
pub(super) async fn delete(session: &mut Session<'_>, keys: &Vec<String>) -> Worked<()> {
    const SQL: &str = "WITH k AS (SELECT key, i FROM unnest($1::text[]) WITH ORDINALITY k(key, i)), \
         h AS (UPDATE flare.lease_history SET revision = revision + $2 RETURNING revision), \
         gone AS (DELETE FROM flare.lease_keys l USING k WHERE l.key = k.key), \
         told AS (INSERT INTO flare.lease_events (revision, key) \
             SELECT h.revision - $2 + k.i, k.key FROM h, k) \
         SELECT revision FROM h";
    let count = i64::try_from(keys.len()).unwrap_or(i64::MAX);
    let row = session.query_opt(SQL, &[keys, &count]).await?;
    let revision: i64 = row.map_or(Ok(0), |row| row.try_get(0))?;
    forget(session, revision, revision - count).await
}

/// Writes a key; gives the revision.
pub(super) async fn write(
    session: &mut Session<'_>,
    write: &Write,
    there: Option<&Entry>,
) -> Worked<StoreRevision> {
    const SQL: &str = "WITH h AS (UPDATE flare.lease_history SET revision = revision + 1 RETURNING revision), \
         w AS (INSERT INTO flare.lease_keys (key, value, created, revision, lease) \
             SELECT $1, $2, coalesce($4, h.revision), h.revision, $3 FROM h \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision, \
                 lease = excluded.lease RETURNING created), \
         told AS (INSERT INTO flare.lease_events (revision, key, value, created, lease) \
             SELECT h.revision, $1, $2, coalesce($4, h.revision), $3 FROM h) \
         SELECT revision FROM h";
    let created = there.map(|entry| i64::try_from(entry.created.get()).unwrap_or(i64::MAX));
    let (lease, value) = (write.lease.map(LeaseId::get), &write.value[..]);
    let values: [&dyn Value; 4] = [&write.key, &value, &lease, &created];
    let row = session.query_opt(SQL, &values).await?;
    let revision: i64 = row.map_or(Ok(0), |row| row.try_get(0))?;
    forget(session, revision, revision - 1).await?;
    Ok(read_revision(revision))
}

fn entry(row: &Row) -> std::result::Result<Entry, tokio_postgres::Error> {
    let (key, value): (String, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
    let (created, revision): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
    let lease: Option<i64> = row.try_get(4)?;
    let (created, revision) = (read_revision(created), read_revision(revision));
    Ok(Entry::new(key, value, created, revision, lease.map(LeaseId::new)))
}

pub(super) async fn get(session: &mut Session<'_>, key: &str) -> Worked<Option<Entry>> {
    const SQL: &str =
        "SELECT key, value, created, revision, lease FROM flare.lease_keys WHERE key = $1";
    let row = session.query_opt(SQL, &[&key]).await?;
    Ok(row.as_ref().map(entry).transpose()?)
}

/// The keys under a prefix, with how far history is at that moment.
pub(super) async fn list(session: &mut Session<'_>, prefix: &str) -> Worked<Snapshot> {
    const SQL: &str = "SELECT k.key, k.value, k.created, k.revision, k.lease, h.revision \
         FROM flare.lease_history h LEFT JOIN flare.lease_keys k ON starts_with(k.key, $1) ORDER BY k.key";
    let rows = session.query(SQL, &[&prefix]).await?;
    let (mut entries, mut revision) = (Vec::with_capacity(rows.len()), 0);
    for row in &rows {
        revision = row.try_get(5)?;
        if row.try_get::<_, Option<String>>(0)?.is_some() {
            entries.push(entry(row)?);
        }
    }
    Ok(Snapshot::new(entries, read_revision(revision)))
}

/// What happened under a prefix after a revision.
pub(super) struct News {
    pub(super) events: Vec<KeyEvent>,
    /// How far history was seen.
    pub(super) seen: i64,
}

/// The news after a revision, unless some of it is forgotten.
pub(super) async fn news(
    session: &mut Session<'_>,
    prefix: &str,
    from: i64,
) -> Worked<Result<News>> {
    const SQL: &str = "SELECT e.key, e.value, e.created, e.revision, e.lease, h.revision, h.forgotten \
         FROM flare.lease_history h LEFT JOIN LATERAL (SELECT * FROM flare.lease_events e \
             WHERE e.revision > $2 AND starts_with(e.key, $1) ORDER BY e.revision LIMIT $3) e ON true \
         ORDER BY e.revision";
    let rows = session.query(SQL, &[&prefix, &from, &PAGE]).await?;
    let mut news = News { events: Vec::with_capacity(rows.len()), seen: from };
    for row in &rows {
        let (seen, forgotten): (i64, i64) = (row.try_get(5)?, row.try_get(6)?);
        if from < forgotten {
            let detail = format!("changes up to {forgotten} are forgotten");
            return Ok(Err(error::of(ErrorKind::Compacted, "watch", detail)));
        }
        news.seen = seen;
        let Some(key) = row.try_get::<_, Option<String>>(0)? else { continue };
        let revision: i64 = row.try_get(3)?;
        let written = row.try_get::<_, Option<Vec<u8>>>(1)?.is_some();
        let change = if written { KeyChange::Written(entry(row)?) } else { KeyChange::Deleted };
        news.events.push(KeyEvent::new(read_revision(revision), key, change));
    }
    // A page that is full ends at its last event.
    if i64::try_from(news.events.len()).is_ok_and(|events| events == PAGE)
        && let Some(last) = news.events.last()
    {
        news.seen = i64::try_from(last.revision.get()).unwrap_or(i64::MAX);
    }
    Ok(Ok(news))
}
