//! Takes what is asked of dead letters; lists them, finds them by id, and drops their details once they are
//! old.

use flare_core::Result;
use flare_core::model::{DeadLetterId, Row, SubscriptionId, Timestamp};
use flare_core::port::{Listing, Page};
use rusqlite::{OptionalExtension, params};

use super::read::FoundRow;
use crate::codec::{counted, time};
use crate::engine::{Reader, Tx, names};
use crate::fault::Worked;
use crate::repository::limit;

/// The rows of dead letters, for `l`.
const JOINED: &str = "JOIN rows r ON r.subscription = l.subscription AND r.document = l.document";

/// A page of a subscription's dead letters, oldest death first.
pub(super) fn list(
    reader: &Reader<'_>,
    subscription: SubscriptionId,
    page: Page,
) -> Worked<Listing<Row>> {
    let Some(of) = names::subscriber(reader.connection, subscription)? else {
        return Ok(Listing::new(Vec::new(), 0));
    };
    let mut count = reader.sql("SELECT count(*) FROM dead_letters WHERE subscription = ?1")?;
    let total = count.query_row([of.n], counted)?;
    let sql = format!(
        "SELECT {} FROM dead_letters l {JOINED} {} WHERE l.subscription = ?1 \
         ORDER BY l.died, l.id LIMIT ?2 OFFSET ?3",
        FoundRow::columns(),
        FoundRow::FROM
    );
    let mut list = reader.sql(&sql)?;
    let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
    let found = list.query_map(params![of.n, page.limit, offset], FoundRow::of)?;
    let found: Vec<FoundRow> = found.collect::<rusqlite::Result<_>>()?;
    let read: Vec<Result<Row>> = found.iter().map(|found| found.row("dead_letters")).collect();
    Ok(Listing::of_read(read, total)?)
}

/// The dead letters with these ids, one answer each.
pub(super) fn find(
    reader: &Reader<'_>,
    subscription: SubscriptionId,
    ids: &[DeadLetterId],
) -> Worked<Vec<Option<Row>>> {
    let Some(of) = names::subscriber(reader.connection, subscription)? else {
        return Ok(vec![None; ids.len()]);
    };
    let sql = format!(
        "SELECT {} FROM dead_letters l {JOINED} {} WHERE l.id = ?1 AND l.subscription = ?2",
        FoundRow::columns(),
        FoundRow::FROM
    );
    let mut find = reader.sql(&sql)?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        let found = find.query_row(params![id.as_bytes(), of.n], FoundRow::of).optional()?;
        rows.push(found.map(|found| found.row("find_dead_letters")).transpose()?);
    }
    Ok(rows)
}

/// Drops the details of rows that died by a time; tells how many.
pub(super) fn drop_details(tx: &mut Tx<'_>, until: Timestamp, most: usize) -> Worked<u64> {
    let mut old = tx.sql(
        "SELECT subscription, document FROM dead_letters INDEXED BY dead_letters_deaths \
         WHERE died <= ?1 ORDER BY died LIMIT ?2",
    )?;
    let found = old.query_map([time(until), limit(most)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(i64, i64)> = found.collect::<rusqlite::Result<_>>()?;
    let mut forget =
        tx.sql("DELETE FROM dead_letters WHERE subscription = ?1 AND document = ?2")?;
    let mut note = tx.sql("UPDATE rows SET dead = 0 WHERE subscription = ?1 AND document = ?2")?;
    for (subscription, document) in &found {
        forget.execute([subscription, document])?;
        note.execute([subscription, document])?;
    }
    tx.after.freed |= !found.is_empty();
    Ok(found.len() as u64)
}
