//! Takes whom pending rows are handed to; hands them out, once each. Makes what waits for later due now.

use flare_core::model::{RECORD_FORMAT, Row, SubscriptionId, Timestamp};
use flare_core::port::ClaimRows;

use super::super::PostgresRepository;
use super::change::{Change, store};
use super::found::{FoundRow, WIDTH, columns, named};
use crate::codec::{id as uuid, limit, read_time};
use crate::connection::Value;
use crate::fault::Worked;

/// Rows that a puller may have, as `Row::is_claimable` has it. What cannot be read is left to whoever can.
const CLAIMABLE: &str = concat!(
    "SELECT ",
    columns!(),
    ", t.now FROM (SELECT flare.now() AS now) t CROSS JOIN flare.rows r",
    named!(),
    "WHERE s.id = $1 AND r.pending AND r.due <= t.now AND NOT r.demanded \
     AND (r.claim IS NULL OR r.claim_until <= t.now) AND r.state BETWEEN 0 AND 47 \
     AND coalesce(r.needs, 0) BETWEEN 0 AND $3 \
     ORDER BY r.due, r.document LIMIT $2 FOR NO KEY UPDATE OF r SKIP LOCKED"
);

/// As `Row::expedite` has it.
const EXPEDITE: &str = "WITH l AS (SELECT r.subscription, r.document, t.now \
         FROM (SELECT flare.now() AS now) t CROSS JOIN flare.rows r \
         JOIN flare.subscription_ids s ON s.n = r.subscription \
         WHERE s.id = $1 AND r.pending AND r.due > greatest(t.now, r.not_before) \
         AND (r.claim IS NULL OR r.claim_until <= t.now) \
         ORDER BY r.subscription, r.document LIMIT $2 FOR NO KEY UPDATE OF r) \
     UPDATE flare.rows r SET due = greatest(l.now, r.not_before) FROM l \
     WHERE r.subscription = l.subscription AND r.document = l.document RETURNING 1";

impl PostgresRepository {
    /// Hands rows that a puller may have to a claim.
    pub(super) async fn claim(&self, request: &ClaimRows) -> Worked<Vec<Row>> {
        let ClaimRows { subscription, claim, max, holds_for } = request;
        self.change_claimable("claim_rows", *subscription, *max, |row, now| {
            row.claim(*claim, now + *holds_for);
        })
        .await
    }

    /// Marks rows that a puller may have as asked for by their client; tells how many.
    pub(super) async fn demand(&self, subscription: SubscriptionId, max: usize) -> Worked<u64> {
        let marked = self.change_claimable("demand_rows", subscription, max, |row, now| {
            row.demand(now);
        });
        Ok(marked.await?.len() as u64)
    }

    /// Does something to the rows that a puller may have, earliest due first; gives them as they are then.
    async fn change_claimable(
        &self,
        operation: &'static str,
        subscription: SubscriptionId,
        max: usize,
        change: impl Fn(&mut Row, Timestamp),
    ) -> Worked<Vec<Row>> {
        let format = RECORD_FORMAT.cast_signed();
        let values: [&dyn Value; 3] = [&uuid(subscription.as_bytes()), &limit(max), &format];
        let mut session = self.database.session(operation).await?;
        let rows = session.begin(CLAIMABLE, &values).await?;
        let mut changes = Vec::with_capacity(rows.len());
        for row in &rows {
            let (found, now) = (FoundRow::of(row)?, read_time(row.try_get(WIDTH)?));
            let Ok(before) = found.row(operation) else { continue };
            let mut after = before.clone();
            change(&mut after, now);
            changes.push(Change { place: found.place, before, after });
        }
        store(&mut session, operation, changes.iter()).await?;
        Ok(changes.into_iter().map(|change| change.after).collect())
    }

    /// Makes rows due that are pending and due later than they need be; tells how many.
    pub(super) async fn expedite(&self, subscription: SubscriptionId, most: usize) -> Worked<u64> {
        let values: [&dyn Value; 2] = [&uuid(subscription.as_bytes()), &limit(most)];
        Ok(self.database.all("expedite_rows", EXPEDITE, &values).await?.len() as u64)
    }
}
