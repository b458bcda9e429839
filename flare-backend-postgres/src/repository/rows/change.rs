//! Takes what lanes' owners, pullers and operators want of rows; locks them, stores what the row's own
//! functions make of them, in two round trips.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::model::{Applied, Row, RowKey, Timestamp};
use flare_core::port::{ClaimUpdate, Replay};
use uuid::Uuid;

use super::super::PostgresRepository;
use super::found::{FoundRow, WIDTH, columns};
use crate::codec::resource::internal;
use crate::codec::row::{Columns, RowPlace};
use crate::codec::{id as uuid, read_time};
use crate::connection::Session;
use crate::fault::Worked;

/// Rows by their keys, locked in an order that is the same for everybody.
const LOCK: &str = concat!(
    "SELECT ",
    columns!(),
    ", k.i, flare.now() FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY k(subscription, url, i) \
     JOIN flare.subscription_ids s ON s.id = k.subscription \
     JOIN flare.documents d ON d.hash = hashtextextended(k.url, 0) AND d.url = k.url \
     JOIN flare.resource_ids i ON i.n = d.resource \
     JOIN flare.rows r ON r.subscription = s.n AND r.document = d.n \
     ORDER BY r.subscription, r.document FOR NO KEY UPDATE OF r"
);

/// Stores rows that are locked.
const STORE: &str = "UPDATE flare.rows r SET pending = v.pending, state = v.state, wanted = v.wanted, \
     settled = v.settled, due = v.due, since = v.since, generation = v.generation, epoch = v.epoch, \
     given_up = v.given_up, attempted = v.attempted, attempts = v.attempts, \
     first_failure = v.first_failure, round = v.round, not_before = v.not_before, demanded = v.demanded, \
     claim = v.claim, claim_until = v.claim_until, claim_held = v.claim_held, dead = v.dead, \
     dead_id = v.dead_id, died = v.died \
     FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::boolean[], $5::smallint[], $6::bigint[], \
         $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], \
         $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::boolean[], \
         $19::uuid[], $20::bigint[], $21::smallint[], $22::text[], $23::uuid[], $24::bigint[]) \
         v(subscription, document, bucket, pending, state, wanted, settled, due, since, generation, epoch, \
         given_up, attempted, attempts, first_failure, round, not_before, demanded, claim, claim_until, \
         claim_held, dead, dead_id, died) \
     WHERE r.subscription = v.subscription AND r.document = v.document";

/// A row as it was read, and as it is to be.
pub(super) struct Change {
    pub(super) place: RowPlace,
    pub(super) before: Row,
    pub(super) after: Row,
}

/// Stores what changed, and ends the transaction.
pub(super) async fn store<'a>(
    session: &mut Session<'_>,
    operation: &'static str,
    changes: impl Iterator<Item = &'a Change>,
) -> Worked<()> {
    let mut columns = Columns::default();
    for change in changes.filter(|change| change.before != change.after) {
        columns.push(change.place, &change.after).map_err(|error| internal(operation, error))?;
    }
    if columns.is_empty() {
        return session.roll_back().await;
    }
    session.finish(STORE, &columns.values()).await?;
    Ok(())
}

impl PostgresRepository {
    /// Does something to each row that is there, and stores what changed; one answer each, `None` if there is
    /// none.
    pub(super) async fn change_rows<'a, T>(
        &self,
        operation: &'static str,
        keys: impl Iterator<Item = &'a RowKey>,
        read: fn(&FoundRow, &'static str) -> Result<Row>,
        mut change: impl FnMut(usize, &mut Row, Timestamp) -> T,
    ) -> Worked<Vec<Result<Option<T>>>> {
        let (subscriptions, urls): (Vec<Uuid>, Vec<&str>) =
            keys.map(|key| (uuid(key.subscription.as_bytes()), key.url.as_str())).unzip();
        if subscriptions.is_empty() {
            return Ok(Vec::new());
        }
        let mut session = self.database.session(operation).await?;
        let rows = session.begin(LOCK, &[&subscriptions, &urls]).await?;
        let mut now = Timestamp::EPOCH;
        let mut changes: HashMap<RowPlace, Result<Change>> = HashMap::with_capacity(rows.len());
        let mut places: Vec<Option<RowPlace>> = vec![None; subscriptions.len()];
        for row in &rows {
            let found = FoundRow::of(row)?;
            now = read_time(row.try_get(WIDTH + 1)?);
            let asked: i64 = row.try_get(WIDTH)?;
            let asked = usize::try_from(asked - 1).ok();
            if let Some(place) = asked.and_then(|asked| places.get_mut(asked)) {
                *place = Some(found.place);
            }
            changes.entry(found.place).or_insert_with(|| {
                let before = read(&found, operation)?;
                Ok(Change { place: found.place, after: before.clone(), before })
            });
        }
        let mut answers = Vec::with_capacity(places.len());
        for (asked, place) in places.iter().enumerate() {
            let found = place.and_then(|place| changes.get_mut(&place));
            answers.push(match found {
                None => Ok(None),
                Some(Err(error)) => Err(error.clone()),
                Some(Ok(found)) => Ok(Some(change(asked, &mut found.after, now))),
            });
        }
        store(&mut session, operation, changes.values().flatten()).await?;
        Ok(answers)
    }

    /// Applies what pullers settled.
    pub(super) async fn settle_claims(
        &self,
        updates: &[ClaimUpdate],
    ) -> Worked<Vec<Result<Applied>>> {
        let keys = updates.iter().map(|update| &update.key);
        let done = self.change_rows("apply_claims", keys, FoundRow::row, |place, row, now| {
            let ClaimUpdate { claim, round, effect, .. } = &updates[place];
            row.apply_claimed(*claim, *round, effect.clone(), now)
        });
        let missing =
            |done: Result<Option<Applied>>| done.map(|done| done.unwrap_or(Applied::Missing));
        Ok(done.await?.into_iter().map(missing).collect())
    }

    /// Takes versions off the dead letters.
    pub(super) async fn replay(&self, replays: &[Replay]) -> Worked<Vec<Result<bool>>> {
        let keys = replays.iter().map(|replay| &replay.key);
        let done = self.change_rows("replay_rows", keys, FoundRow::row, |place, row, now| {
            row.replay(replays[place].version, now)
        });
        let missing = |done: Result<Option<bool>>| done.map(|done| done.unwrap_or(false));
        Ok(done.await?.into_iter().map(missing).collect())
    }
}
