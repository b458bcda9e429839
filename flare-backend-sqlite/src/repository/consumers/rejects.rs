//! Takes messages that became no document; lists the last ones of a consumer, finds them by id, and forgets
//! them.

use std::collections::BTreeSet;

use flare_core::Result;
use flare_core::model::{ConsumerId, Reject, RejectId, Timestamp};
use flare_core::port::{Listing, Page};
use rusqlite::{OptionalExtension, params};

use super::number;
use crate::codec::reject::{COLUMNS, StoredReject};
use crate::codec::{counted, time};
use crate::engine::{Reader, Tx};
use crate::fault::Worked;
use crate::repository::limit;

/// Keeps rejects, with their records in the same order, and of each of their consumers the last `most`.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    rejects: &[Reject],
    records: &[String],
    most: usize,
) -> Worked<()> {
    let mut keep = tx.sql(
        "INSERT INTO rejects (consumer, id, rejected, record) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (consumer, id) \
         DO UPDATE SET rejected = excluded.rejected, record = excluded.record, needs = NULL",
    )?;
    let mut filled = BTreeSet::new();
    for (reject, record) in rejects.iter().zip(records) {
        let Some(n) = number(tx.connection, reject.consumer)? else { continue };
        keep.execute(params![n, reject.id.as_bytes(), time(reject.rejected_at), record])?;
        filled.insert(n);
    }
    let mut forget = tx.sql(
        "DELETE FROM rejects WHERE n IN (SELECT n FROM rejects WHERE consumer = ?1 \
         ORDER BY rejected DESC, id DESC LIMIT -1 OFFSET ?2)",
    )?;
    for n in filled {
        tx.after.freed |= forget.execute([n, limit(most)])? > 0;
    }
    Ok(())
}

/// A page of a consumer's rejects, oldest rejection first.
pub(super) fn list(
    reader: &Reader<'_>,
    consumer: ConsumerId,
    page: Page,
) -> Worked<Listing<Reject>> {
    let Some(n) = number(reader.connection, consumer)? else {
        return Ok(Listing::new(Vec::new(), 0));
    };
    let mut count = reader.sql("SELECT count(*) FROM rejects WHERE consumer = ?1")?;
    let total = count.query_row([n], counted)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM rejects WHERE consumer = ?1 \
         ORDER BY rejected, id LIMIT ?2 OFFSET ?3"
    );
    let mut list = reader.sql(&sql)?;
    let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
    let found = list.query_map(params![n, page.limit, offset], StoredReject::of)?;
    let found: Vec<StoredReject> = found.collect::<rusqlite::Result<_>>()?;
    let read: Vec<Result<Reject>> =
        found.iter().map(|found| found.reject("list_rejects", consumer)).collect();
    Ok(Listing::of_read(read, total)?)
}

/// The rejects of a consumer with these ids, of those that there are.
pub(super) fn find(
    reader: &Reader<'_>,
    consumer: ConsumerId,
    ids: &[RejectId],
) -> Worked<Vec<Reject>> {
    let Some(n) = number(reader.connection, consumer)? else { return Ok(Vec::new()) };
    let sql = format!("SELECT {COLUMNS} FROM rejects WHERE consumer = ?1 AND id = ?2");
    let mut find = reader.sql(&sql)?;
    let mut rejects = Vec::with_capacity(ids.len());
    for id in ids {
        let found = find.query_row(params![n, id.as_bytes()], StoredReject::of).optional()?;
        rejects.extend(found.map(|found| found.reject("rejects", consumer)).transpose()?);
    }
    Ok(rejects)
}

/// Forgets rejects of a consumer, of those that there are.
pub(super) fn remove(tx: &mut Tx<'_>, consumer: ConsumerId, ids: &[RejectId]) -> Worked<()> {
    let Some(n) = number(tx.connection, consumer)? else { return Ok(()) };
    let mut forget = tx.sql("DELETE FROM rejects WHERE consumer = ?1 AND id = ?2")?;
    for id in ids {
        tx.after.freed |= forget.execute(params![n, id.as_bytes()])? > 0;
    }
    Ok(())
}

/// Forgets rejects of a consumer from before a time, the oldest first; tells how many.
pub(super) fn expire(
    tx: &mut Tx<'_>,
    consumer: ConsumerId,
    before: Timestamp,
    most: usize,
) -> Worked<u64> {
    let Some(n) = number(tx.connection, consumer)? else { return Ok(0) };
    let mut forget = tx.sql(
        "DELETE FROM rejects WHERE n IN (SELECT n FROM rejects \
         WHERE consumer = ?1 AND rejected < ?2 ORDER BY rejected, id LIMIT ?3)",
    )?;
    let forgotten = forget.execute([n, time(before), limit(most)])?;
    tx.after.freed |= forgotten > 0;
    Ok(forgotten as u64)
}
