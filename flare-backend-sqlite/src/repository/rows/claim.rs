//! Takes whom pending rows are handed to, within the writer's transaction; hands them out, once each. Makes
//! what waits for later due now.

use flare_core::model::{Row, SubscriptionId};
use flare_core::port::ClaimRows;
use rusqlite::params;

use super::change::RowChanges;
use super::read::FoundRow;
use crate::codec::row::RowPlace;
use crate::codec::time;
use crate::engine::Tx;
use crate::fault::Worked;
use crate::repository::limit;

/// Hands rows that a puller may have to a claim.
pub(super) fn claim(tx: &mut Tx<'_>, request: &ClaimRows) -> Worked<Vec<Row>> {
    const OPERATION: &str = "claim_rows";
    let until = tx.now + request.holds_for;
    change_claimable(tx, OPERATION, request.subscription, request.max, |row| {
        row.claim(request.claim, until);
    })
}

/// Marks rows that a puller may have as asked for by their client; tells how many.
pub(super) fn demand(tx: &mut Tx<'_>, subscription: SubscriptionId, max: usize) -> Worked<u64> {
    let now = tx.now;
    let mark = |row: &mut Row| {
        row.demand(now);
    };
    Ok(change_claimable(tx, "demand_rows", subscription, max, mark)?.len() as u64)
}

/// Does something to the rows that a puller may have, earliest due first; gives them as they are then.
fn change_claimable(
    tx: &mut Tx<'_>,
    operation: &'static str,
    subscription: SubscriptionId,
    max: usize,
    change: impl Fn(&mut Row),
) -> Worked<Vec<Row>> {
    let Some(n) = tx.subscriber(subscription)?.map(|of| of.n) else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT {} FROM rows r INDEXED BY rows_pending {} \
         WHERE r.pending = 1 AND r.subscription = ?1 AND r.due <= ?2 AND r.demanded = 0 ORDER BY r.due",
        FoundRow::columns(),
        FoundRow::FROM
    );
    let mut find = tx.sql(&sql)?;
    let mut due = find.query(params![n, time(tx.now)])?;
    let mut found = Vec::new();
    while found.len() < max
        && let Some(row) = due.next()?
    {
        let row = FoundRow::of(row)?;
        // One that cannot be read is left to whoever can.
        if let Ok(read) = row.row(operation)
            && read.is_claimable(tx.now)
        {
            found.push((RowPlace { subscription: n, document: row.document }, read));
        }
    }
    drop(due);
    let mut changes = RowChanges::prepare(tx)?;
    let mut changed = Vec::with_capacity(found.len());
    for (place, before) in found {
        let mut after = before.clone();
        change(&mut after);
        changes.store(tx, operation, place, &before, &after)?;
        changed.push(after);
    }
    Ok(changed)
}

/// Makes rows due that are pending and due later than they need be; tells how many.
pub(super) fn expedite(tx: &mut Tx<'_>, subscription: SubscriptionId, most: usize) -> Worked<u64> {
    let Some(n) = tx.subscriber(subscription)?.map(|of| of.n) else { return Ok(0) };
    // As `Row::expedite` has it.
    let mut later = tx.sql(
        "SELECT document FROM rows INDEXED BY rows_pending \
         WHERE pending = 1 AND subscription = ?1 AND due > ?2 \
         AND due > max(?2, coalesce(not_before, ?2)) AND (claim IS NULL OR claim_until <= ?2) \
         ORDER BY due LIMIT ?3",
    )?;
    let now = time(tx.now);
    let found = later.query_map(params![n, now, limit(most)], |row| row.get(0))?;
    let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
    let mut hurry = tx.sql(
        "UPDATE rows SET due = max(?3, coalesce(not_before, ?3)) \
         WHERE subscription = ?1 AND document = ?2",
    )?;
    for document in &found {
        hurry.execute(params![n, document, now])?;
    }
    Ok(found.len() as u64)
}
