//! Takes keys of documents; gives their records, locked for the rest of the transaction. What a host's open
//! transaction has locked is not waited for.

use std::collections::HashMap;
use std::time::Duration;

use flare_core::model::{DocumentKey, Timestamp};
use flare_core::{Error, ErrorKind, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use super::name_of;
use crate::codec::document::{Head, StoredDocument};
use crate::codec::{id as uuid, read_time, unreadable_record};
use crate::connection::Session;
use crate::error;
use crate::fault::Worked;

/// The records of keys, in whatever order: whether there is one, and the record if it could be locked.
macro_rules! locking {
    ($how:literal) => {
        concat!(
            "WITH k AS MATERIALIZED (SELECT k.i, r.n AS resource, k.url \
                 FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY k(resource, url, i) \
                 LEFT JOIN flare.resource_ids r ON r.id = k.resource), \
             l AS (SELECT k.i, d.* FROM k JOIN flare.documents d \
                 ON d.resource = k.resource AND d.hash = hashtextextended(k.url, 0) AND d.url = k.url \
                 ORDER BY d.n FOR NO KEY UPDATE OF d",
            $how,
            ") SELECT l.n, l.url, l.revision, l.gone, l.updated, l.dispatched, l.dispatched_gone, l.open, \
                 l.trace, l.moved, l.needs, k.i, k.resource IS NOT NULL, there.n IS NOT NULL, flare.now() \
             FROM k LEFT JOIN l ON l.i = k.i LEFT JOIN flare.documents there \
                 ON there.resource = k.resource AND there.hash = hashtextextended(k.url, 0) \
                 AND there.url = k.url"
        )
    };
}
const LOCK: &str = locking!(" SKIP LOCKED");
/// The same, and it waits.
const LOCK_AND_WAIT: &str = locking!("");

/// A document that somebody wants to change.
pub(super) struct Locked {
    /// Whether its resource has a number.
    pub(super) numbered: bool,
    pub(super) now: Timestamp,
    pub(super) state: State,
}

/// How it is.
pub(super) enum State {
    /// There is none.
    Absent,
    /// Somebody else has locked it.
    Taken,
    /// It has this number, and says this, if it stands for a document.
    Held { n: i64, head: Option<Result<Head>> },
}

/// What to do about a document that somebody else has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It is passed over.
    None,
    /// It is waited for, a moment: whoever of Flare's has it is done by then, and else all of them fail.
    Some,
}

impl Patience {
    /// First what can be had at once, then what can be had in a moment, and so on while there is a point in it:
    /// for a second or so.
    pub(super) const TURNS: [Self; 6] =
        [Self::None, Self::Some, Self::None, Self::Some, Self::None, Self::Some];
    /// When no further turn begins, however many there are left: the others of the batch wait for their answers.
    pub(super) const LIMIT: Duration = Duration::from_millis(1_200);
}

/// Begins a transaction with the records of these keys, each of them once.
pub(super) async fn lock(
    session: &mut Session<'_>,
    operation: &'static str,
    patience: Patience,
    keys: &[DocumentKey],
) -> Worked<Vec<Locked>> {
    let (resources, urls) = columns(keys);
    let sql = match patience {
        Patience::None => LOCK,
        Patience::Some => LOCK_AND_WAIT,
    };
    let rows = session.begin_in_haste(sql, &[&resources, &urls]).await?;
    read(operation, keys, &rows)
}

/// Keys, column by column.
pub(super) fn columns(keys: &[DocumentKey]) -> (Vec<Uuid>, Vec<&str>) {
    keys.iter().map(|key| (uuid(key.resource.as_bytes()), key.url.as_str())).unzip()
}

/// What was locked, for each of the keys.
fn read(operation: &'static str, keys: &[DocumentKey], rows: &[Row]) -> Worked<Vec<Locked>> {
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let place: i64 = row.try_get(11)?;
        let key = usize::try_from(place - 1).ok().and_then(|place| keys.get(place));
        if let Some(key) = key {
            found.insert(place, locked(operation, key, row)?);
        }
    }
    let missing = || Locked { numbered: false, now: Timestamp::EPOCH, state: State::Taken };
    Ok((1..).take(keys.len()).map(|place| found.remove(&place).unwrap_or_else(missing)).collect())
}

fn locked(operation: &'static str, key: &DocumentKey, row: &Row) -> Worked<Locked> {
    let (numbered, there): (bool, bool) = (row.try_get(12)?, row.try_get(13)?);
    let n: Option<i64> = row.try_get(0)?;
    let state = match n {
        None if there => State::Taken,
        None => State::Absent,
        Some(n) => {
            let head = StoredDocument::of(row)?.head();
            let named = |why| unreadable_record(operation, name_of(key), why);
            State::Held { n, head: head.map(|head| head.map_err(named)) }
        }
    };
    Ok(Locked { numbered, now: read_time(row.try_get(14)?), state })
}

/// What is said of a document that somebody had locked all the while.
pub(super) fn taken(operation: &'static str) -> Error {
    let detail = "somebody's open transaction has locked the document";
    error::of(ErrorKind::Busy, operation, detail)
}

/// Each of some keys once, and which of them each of the given ones is.
pub(super) fn distinct<'a>(
    keys: impl Iterator<Item = &'a DocumentKey>,
) -> (Vec<DocumentKey>, Vec<usize>) {
    let (mut once, mut places): (Vec<DocumentKey>, HashMap<&DocumentKey, usize>) =
        Default::default();
    let which = keys.map(|key| {
        *places.entry(key).or_insert_with(|| {
            once.push(key.clone());
            once.len() - 1
        })
    });
    let which = which.collect();
    (once, which)
}
