//! Rows that want a document which is not there any more. A spread that outlived everything it
//! belongs to (its worker stood still inside the write, longer than a tombstone is kept) makes such
//! a row anew: its client never held the document, and there is nothing left to tell.

use super::Lane;
use crate::error::Result;
use crate::model::{Document, Epoch, Row, RowEffect, RowKey, Spread, Timestamp, Version};
use crate::pipeline::batch::batches;
use crate::port::RowUpdate;

/// Whether nothing that runs can still bring the document a row wants. Documents are stored before
/// their rows: one that is missing is a store's that lags behind, for as long as a task may live.
pub(super) fn is_orphan(lane: &Lane, row: &Row, now: Timestamp) -> bool {
    row.epoch == Epoch::ZERO && now - row.since >= lane.context.settings.task_lifetime
}

/// Forgets such rows, as expiry does: kept as settled, one would hide a document of the same URL
/// that starts at a lower revision.
pub(super) async fn forget(lane: &Lane, orphans: Vec<Row>) -> Result<()> {
    let present = |row: &Row| lane.term.takeover.holding(row.present, row.epoch, row.since);
    for rows in batches(lane.context.batch_limit(), orphans) {
        let settle = |row: &Row| {
            let (version, not_before) = (row.wanted, None);
            let effect = RowEffect::Settle { version, present: present(row), not_before };
            RowUpdate { key: row.key.clone(), round: row.round, effect }
        };
        // Whatever the answer, it may have taken place: what is settled is removed.
        let applied = lane.groups.rows.store(rows.iter().map(settle).collect()).await;
        let settled: Vec<(RowKey, Version)> =
            rows.iter().map(|row| (row.key.clone(), row.wanted)).collect();
        for removal in lane.context.repository.remove_settled_rows(settled).await {
            removal?;
        }
        applied.into_iter().collect::<Result<Vec<_>>>()?;
        respread(lane, rows).await?;
    }
    Ok(())
}

/// Spreads again what was put anew in the meantime: its own spread may have found the row that is
/// gone now.
async fn respread(lane: &Lane, rows: Vec<Row>) -> Result<()> {
    let keys = rows.iter().map(|row| row.document.clone()).collect();
    let ask = |keys| lane.context.repository.documents(keys);
    let documents: Vec<Result<Option<Document>>> = lane.context.each_readable(keys, ask).await?;
    let spread = |(row, document): (Row, Result<Option<Document>>)| {
        let wanted = document.ok().flatten()?.version;
        let Row { key, document, generation, .. } = row;
        Some(Spread::new(key.subscription, generation, document, wanted))
    };
    let spreads: Vec<Spread> = rows.into_iter().zip(documents).filter_map(spread).collect();
    if spreads.is_empty() {
        return Ok(());
    }
    lane.context.repository.spread_rows(spreads).await
}
