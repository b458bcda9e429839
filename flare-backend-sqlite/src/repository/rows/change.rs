//! Takes what lanes' owners, pullers and operators want of rows, within the writer's transaction; stores what
//! the row's own functions make of it.

use flare_core::Result;
use flare_core::model::{Applied, Epoch, RecordName, Row, RowEffect, RowKey};
use flare_core::port::{ClaimUpdate, Replay, RowUpdate};
use rusqlite::{CachedStatement, params};

use super::place::{RowFinder, places};
use crate::codec::resource::internal;
use crate::codec::row::{self, RowPlace, SETTLE, Settled, UPDATE};
use crate::codec::{time, unreadable_record};
use crate::engine::Tx;
use crate::fault::Worked;

/// Applies effects of a lane's owner, fenced.
pub(super) fn apply(
    tx: &mut Tx<'_>,
    epoch: Epoch,
    updates: &[RowUpdate],
) -> Worked<Vec<Result<Applied>>> {
    const OPERATION: &str = "apply_rows";
    let mut changes = RowChanges::prepare(tx)?;
    let mut settle = tx.sql(SETTLE)?;
    tx.each(OPERATION, updates, |tx, RowUpdate { key, round, effect }| {
        // Mostly a version is settled that nothing stands against.
        if let RowEffect::Settle { version, present, not_before } = effect
            && let [(place, _)] = places(tx, key.subscription, &key.url)?[..]
        {
            let (round, version, present) = (*round, *version, *present);
            let settled = Settled { epoch, round, version, present, not_before: *not_before };
            if row::settle(&mut settle, place, &settled)? {
                return Ok(Applied::Done);
            }
        }
        let apply = |row: &mut Row| row.apply(epoch, *round, effect.clone());
        Ok(changes.change(tx, OPERATION, key, apply)?.unwrap_or(Applied::Missing))
    })
}

/// Applies what pullers settled.
pub(super) fn apply_claims(
    tx: &mut Tx<'_>,
    updates: &[ClaimUpdate],
) -> Worked<Vec<Result<Applied>>> {
    const OPERATION: &str = "apply_claims";
    let mut changes = RowChanges::prepare(tx)?;
    tx.each(OPERATION, updates, |tx, ClaimUpdate { key, claim, round, effect }| {
        let now = tx.now;
        let apply = |row: &mut Row| row.apply_claimed(*claim, *round, effect.clone(), now);
        Ok(changes.change(tx, OPERATION, key, apply)?.unwrap_or(Applied::Missing))
    })
}

/// Takes versions off the dead letters.
pub(super) fn replay(tx: &mut Tx<'_>, replays: &[Replay]) -> Worked<Vec<Result<bool>>> {
    const OPERATION: &str = "replay_rows";
    let mut changes = RowChanges::prepare(tx)?;
    tx.each(OPERATION, replays, |tx, Replay { key, version }| {
        let now = tx.now;
        let replay = |row: &mut Row| row.replay(*version, now);
        Ok(changes.change(tx, OPERATION, key, replay)?.unwrap_or(false))
    })
}

/// Reads rows, has something done to them and stores what changed.
pub(super) struct RowChanges<'a> {
    pub(super) finder: RowFinder<'a>,
    update: CachedStatement<'a>,
}

impl<'a> RowChanges<'a> {
    pub(super) fn prepare(tx: &Tx<'a>) -> rusqlite::Result<Self> {
        Ok(Self { finder: RowFinder::new(tx.connection)?, update: tx.sql(UPDATE)? })
    }

    /// What `change` makes of a row; `None` if there is none.
    pub(super) fn change<T>(
        &mut self,
        tx: &mut Tx<'_>,
        operation: &'static str,
        key: &RowKey,
        change: impl FnOnce(&mut Row) -> T,
    ) -> Worked<Option<T>> {
        let found = self.finder.find(tx, key.subscription, &key.url)?;
        let Some(found) = found else { return Ok(None) };
        let before = found.stored.row(key.subscription, &found.document);
        let before = before
            .map_err(|why| unreadable_record(operation, RecordName::Row(key.clone()), why))?;
        let mut after = before.clone();
        let answer = change(&mut after);
        self.store(tx, operation, found.place, &before, &after)?;
        Ok(Some(answer))
    }

    /// Stores a row that was read as `before`.
    pub(super) fn store(
        &mut self,
        tx: &Tx<'_>,
        operation: &'static str,
        place: RowPlace,
        before: &Row,
        after: &Row,
    ) -> Worked<()> {
        if before == after {
            return Ok(());
        }
        if before.dead != after.dead {
            store_dead(tx, operation, place, after)?;
        }
        Ok(row::update(&mut self.update, place, after)?)
    }
}

/// Stores or drops the details of what was given up.
fn store_dead(tx: &Tx<'_>, operation: &'static str, place: RowPlace, row: &Row) -> Worked<()> {
    let RowPlace { subscription, document } = place;
    let Some(dead) = &row.dead else {
        let mut drop =
            tx.sql("DELETE FROM dead_letters WHERE subscription = ?1 AND document = ?2")?;
        drop.execute([subscription, document])?;
        return Ok(());
    };
    let record = row::dead(dead).map_err(|error| internal(operation, error))?;
    let mut keep = tx.sql(
        "INSERT INTO dead_letters (subscription, document, id, died, record) \
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (subscription, document) \
         DO UPDATE SET id = excluded.id, died = excluded.died, record = excluded.record",
    )?;
    let values = params![subscription, document, dead.id.as_bytes(), time(dead.died_at), record];
    keep.execute(values)?;
    Ok(())
}
