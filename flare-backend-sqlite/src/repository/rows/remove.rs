//! Takes which rows are not needed any more, within the writer's transaction; removes them, with their dead
//! letters, and the names of documents that nobody has any more.

use flare_core::Result;
use flare_core::model::{RowKey, SubscriptionId, Version};
use flare_core::port::RowRemoval;

use super::place::RowFinder;
use crate::codec::row::RowPlace;
use crate::engine::Tx;
use crate::fault::Worked;
use crate::repository::limit;

/// Removes some of a subscription's rows, whatever their state; tells how many.
pub(super) fn some(tx: &mut Tx<'_>, subscription: SubscriptionId, most: usize) -> Worked<u64> {
    let Some(n) = tx.subscriber(subscription)?.map(|of| of.n) else { return Ok(0) };
    let mut some = tx.sql("SELECT document FROM rows WHERE subscription = ?1 LIMIT ?2")?;
    let found = some.query_map([n, limit(most)], |row| row.get(0))?;
    let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
    for document in &found {
        remove(tx, RowPlace { subscription: n, document: *document })?;
    }
    match found.is_empty() {
        true => tx.forget_subscriber(subscription)?,
        false => tx.forgot()?,
    }
    Ok(found.len() as u64)
}

/// Removes rows that have nothing left to tell up to a version.
pub(super) fn settled(
    tx: &mut Tx<'_>,
    rows: &[(RowKey, Version)],
) -> Worked<Vec<Result<RowRemoval>>> {
    let mut finder = RowFinder::new(tx.connection)?;
    let removed = tx.each("remove_settled_rows", rows, |tx, (key, version)| {
        let Some(found) = finder.find(tx, key.subscription, &key.url)? else {
            return Ok(RowRemoval::Missing);
        };
        let RowPlace { subscription, document } = found.place;
        let mut busy = tx.sql(
            "SELECT 1 FROM rows WHERE subscription = ?1 AND document = ?2 \
             AND (pending <> 0 OR dead <> 0)",
        )?;
        if found.stored.wanted() > *version || busy.exists([subscription, document])? {
            return Ok(RowRemoval::Kept);
        }
        remove(tx, found.place)?;
        Ok(RowRemoval::Removed)
    })?;
    tx.forgot()?;
    Ok(removed)
}

fn remove(tx: &mut Tx<'_>, place: RowPlace) -> rusqlite::Result<()> {
    let RowPlace { subscription, document } = place;
    let both = [subscription, document];
    tx.sql("DELETE FROM rows WHERE subscription = ?1 AND document = ?2")?.execute(both)?;
    tx.sql("DELETE FROM dead_letters WHERE subscription = ?1 AND document = ?2")?.execute(both)?;
    // A document that is none had its name for rows alone.
    tx.sql(
        "DELETE FROM documents WHERE n = ?1 AND revision IS NULL \
         AND NOT EXISTS (SELECT 1 FROM rows WHERE document = ?1)",
    )?
    .execute([document])?;
    tx.after.freed = true;
    Ok(())
}
