//! Takes what lanes' owners did; stores it, fenced. Versions that are settled while nothing stands against it,
//! which is nearly all there is to store, are one statement; the others are locked, changed and stored.

use flare_core::Result;
use flare_core::model::{Applied, Epoch, RowEffect, RowKey};
use flare_core::port::RowUpdate;
use uuid::Uuid;

use super::super::PostgresRepository;
use super::found::FoundRow;
use crate::codec::row::{SETTLED_GONE, present};
use crate::codec::{count, id as uuid, limit, time};
use crate::connection::Value;
use crate::fault::Worked;

/// What `Row::apply` does to settle a version of a row that was never given up. Rows are locked first, in an
/// order that is the same for everybody.
const SETTLE: &str = "WITH v AS MATERIALIZED (SELECT r.subscription, r.document, k.* \
         FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::smallint[], $5::smallint[], $6::bigint[], \
             $7::bigint[], $8::bigint[]) \
             k(of, url, version, gone, held, round, not_before, i) \
         JOIN flare.subscription_ids s ON s.id = k.of \
         JOIN flare.documents d ON d.hash = hashtextextended(k.url, 0) AND d.url = k.url \
         JOIN flare.rows r ON r.subscription = s.n AND r.document = d.n \
         ORDER BY r.subscription, r.document FOR NO KEY UPDATE OF r) \
     UPDATE flare.rows r SET settled = v.version, \
         state = (r.state & ~58) | (v.gone * 2) | (v.held * 16), epoch = $9, \
         pending = (r.wanted, r.state & 1) > (v.version, v.gone), attempts = 0, attempted = NULL, \
         first_failure = NULL, demanded = false, not_before = coalesce(v.not_before, r.not_before), \
         due = greatest(r.due, v.not_before) \
     FROM v WHERE r.subscription = v.subscription AND r.document = v.document AND r.epoch <= $9 \
         AND r.round = v.round AND r.given_up IS NULL AND r.dead IS NULL \
         AND (r.settled IS NULL OR (r.settled, r.state & 2) < (v.version, v.gone * 2)) \
         AND r.state BETWEEN 0 AND 47 AND r.needs IS NULL \
     RETURNING v.i";

/// What is settled, column by column.
#[derive(Default)]
struct Settlements<'a> {
    subscription: Vec<Uuid>,
    url: Vec<&'a str>,
    version: Vec<i64>,
    gone: Vec<i16>,
    held: Vec<i16>,
    round: Vec<i64>,
    not_before: Vec<Option<i64>>,
    place: Vec<i64>,
}

impl<'a> Settlements<'a> {
    /// Adds an update, if it is a settlement.
    fn push(&mut self, place: usize, update: &'a RowUpdate) {
        let RowEffect::Settle { version, present: holds, not_before } = &update.effect else {
            return;
        };
        self.subscription.push(uuid(update.key.subscription.as_bytes()));
        self.url.push(update.key.url.as_str());
        self.version.push(version.revision().get());
        self.gone.push(version.is_gone().into());
        self.held.push(present(*holds));
        self.round.push(count(update.round.get()));
        self.not_before.push(not_before.map(time));
        self.place.push(limit(place));
    }
}

impl PostgresRepository {
    /// Applies effects of a lane's owner, fenced.
    pub(super) async fn apply(
        &self,
        epoch: Epoch,
        updates: &[RowUpdate],
    ) -> Worked<Vec<Result<Applied>>> {
        debug_assert_eq!(SETTLED_GONE, 2, "the statement says so");
        let mut answers: Vec<Option<Result<Applied>>> = vec![None; updates.len()];
        for place in self.settle(epoch, updates).await? {
            answers[place] = Some(Ok(Applied::Done));
        }
        let left: Vec<usize> =
            (0..updates.len()).filter(|place| answers[*place].is_none()).collect();
        let keys = left.iter().map(|place| &updates[*place].key);
        let done = self.change_rows("apply_rows", keys, FoundRow::row, |asked, row, _| {
            let RowUpdate { round, effect, .. } = &updates[left[asked]];
            row.apply(epoch, *round, effect.clone())
        });
        for (place, done) in left.iter().zip(done.await?) {
            answers[*place] = Some(done.map(|done| done.unwrap_or(Applied::Missing)));
        }
        Ok(answers.into_iter().map(|answer| answer.unwrap_or(Ok(Applied::Missing))).collect())
    }

    /// Settles what can be settled by one statement; gives its places.
    async fn settle(&self, epoch: Epoch, updates: &[RowUpdate]) -> Worked<Vec<usize>> {
        let mut settled = Settlements::default();
        let mut seen: std::collections::HashSet<&RowKey> = Default::default();
        for (place, update) in updates.iter().enumerate() {
            // One that follows another of the same row has to wait for it.
            if !seen.insert(&update.key) {
                return Ok(Vec::new());
            }
            settled.push(place, update);
        }
        if settled.place.is_empty() {
            return Ok(Vec::new());
        }
        let epoch = count(epoch.get());
        let values: [&dyn Value; 9] = [
            &settled.subscription,
            &settled.url,
            &settled.version,
            &settled.gone,
            &settled.held,
            &settled.round,
            &settled.not_before,
            &settled.place,
            &epoch,
        ];
        let rows = self.database.all("apply_rows", SETTLE, &values).await?;
        let mut places = Vec::with_capacity(rows.len());
        for row in &rows {
            let place: i64 = row.try_get(0)?;
            places.extend(usize::try_from(place).ok().filter(|place| *place < updates.len()));
        }
        Ok(places)
    }
}
