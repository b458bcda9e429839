//! Takes pullers' claims; hands each pending row to one of them at a time, by the server's clock.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::model::{Applied, ClaimEffect, Present, Row, RowEffect, SubscriptionId};
use flare_core::port::{ClaimRows, ClaimUpdate};
use futures::StreamExt;
use futures::stream;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;

use super::super::{MongoRepository, limit, nanos};
use super::layout::{id, raw_id, read_round, read_row, word};
use super::{KIND, change};
use crate::record::{self, Record, now};

/// How many settlements are under way at a time.
const SIDE_BY_SIDE: usize = 16;
/// How often a puller whom others beat to all the rows it found looks for as many again.
const TRIES: usize = 4;

impl MongoRepository {
    pub(super) async fn claim(&self, request: ClaimRows) -> Result<Vec<Row>> {
        const OPERATION: &str = "claim_rows";
        let until = doc! { "$add": [now(), nanos(request.holds_for)] };
        let claim = record::id(request.claim.as_bytes());
        let (no, maybe) = (word(Present::No), word(Present::Maybe));
        let set = doc! { "$set": {
            "claim": { "id": &claim, "until": &until, "held": "$present" },
            "due": until,
            "present": { "$cond": [{ "$eq": ["$present", no] }, maybe, "$present"] },
        } };
        for max in tries(request.max) {
            let changed =
                self.change_claimable(OPERATION, request.subscription, max, vec![set.clone()]);
            let (keys, _) = changed.await?;
            if keys.is_empty() {
                break;
            }
            let mine = self.stored.rows.find(doc! { "_id": { "$in": &keys }, "claim.id": &claim });
            // Those that cannot be read nobody is handed, and nobody else is for as long as the claim holds.
            let read = self.connection.each(OPERATION, KIND, mine, read_row).await?;
            let mut handed: Vec<Row> = read.into_iter().flatten().collect();
            if handed.is_empty() {
                continue;
            }
            // In the order they were due in, before the claim.
            let places =
                keys.iter().enumerate().filter_map(|(place, key)| Some((url(key)?, place)));
            let places: HashMap<&str, usize> = places.collect();
            handed.sort_by_key(|row| places.get(row.key.url.as_str()).copied());
            return Ok(handed);
        }
        Ok(Vec::new())
    }

    pub(super) async fn demand(&self, subscription: SubscriptionId, max: usize) -> Result<u64> {
        const OPERATION: &str = "demand_rows";
        let mark = doc! { "$set": { "demanded": true } };
        for max in tries(max) {
            let changed = self.change_claimable(OPERATION, subscription, max, vec![mark.clone()]);
            let (keys, marked) = changed.await?;
            if keys.is_empty() || marked > 0 {
                return Ok(marked);
            }
        }
        Ok(0)
    }

    /// Changes some rows that a puller may have, earliest due first, as long as they are so still; gives
    /// which were found, and how many of them were changed. Others may have been faster at all of them,
    /// unless one alone is asked for: that one is found and changed at once.
    async fn change_claimable(
        &self,
        operation: &'static str,
        subscription: SubscriptionId,
        max: usize,
        change: Vec<Document>,
    ) -> Result<(Vec<Bson>, u64)> {
        let mut free = doc! {
            "pending": true,
            "_id.subscription": record::id(subscription.as_bytes()),
            "demanded": { "$exists": false },
            "$expr": { "$and": [{ "$lte": ["$due", now()] }, unclaimed()] },
        };
        let (rows, by_due) = (&self.stored.rows, doc! { "due": 1 });
        if max == 1 {
            let call = rows.find_one_and_update(free, change).sort(by_due);
            let call = call.projection(doc! { "_id": 1 });
            let found = self.connection.run(operation, call).await?;
            let ids = found.iter().map(|found| raw_id(Record::new(operation, found)));
            let ids: Vec<Bson> = ids.collect::<Result<_>>()?;
            let changed = ids.len() as u64;
            return Ok((ids, changed));
        }
        let question = rows.find(free.clone()).sort(by_due).projection(doc! { "_id": 1 });
        let keys = self.connection.all(operation, question.limit(limit(max)), raw_id).await?;
        if keys.is_empty() {
            return Ok((keys, 0));
        }
        free.insert("_id", doc! { "$in": &keys });
        let changed = self.connection.run(operation, rows.update_many(free, change)).await?;
        Ok((keys, changed.modified_count))
    }

    pub(super) async fn settle_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>> {
        let settled = updates.into_iter().map(|update| self.settle_claim(update));
        stream::iter(settled).buffered(SIDE_BY_SIDE).collect().await
    }

    async fn settle_claim(&self, update: ClaimUpdate) -> Result<Applied> {
        const OPERATION: &str = "apply_claims";
        let ClaimUpdate { key, claim, round, effect } = update;
        let (pipeline, version) = match effect {
            ClaimEffect::Release => (vec![change::end_claim()], None),
            ClaimEffect::Settle { version, present, not_before } => {
                let settle = RowEffect::Settle { version, present, not_before };
                (change::settle_claimed(round, &settle), Some(version))
            }
        };
        let held = doc! {
            "_id": id(&key),
            "claim.id": record::id(claim.as_bytes()),
            "$expr": { "$gt": ["$claim.until", now()] },
        };
        let rows = &self.stored.rows;
        let call = rows
            .find_one_and_update(held, pipeline)
            .return_document(ReturnDocument::Before)
            .projection(doc! { "settled": 1, "round": 1 });
        match self.connection.run(OPERATION, call).await? {
            Some(before) => {
                let before = Record::new(OPERATION, &before);
                let another = read_round(before)? != round;
                let settled = before.version_if_any("settled")?;
                let overtaken = version.is_some() && (another || settled >= version);
                Ok(if overtaken { Applied::Overtaken } else { Applied::Done })
            }
            None => {
                let question = rows.find_one(doc! { "_id": id(&key) });
                let found =
                    self.connection.run(OPERATION, question.projection(doc! { "_id": 1 })).await?;
                Ok(if found.is_some() { Applied::Expired } else { Applied::Missing })
            }
        }
    }
}

/// How many rows a puller tries to get, again and again until it got some. The last time it is one, which others
/// cannot be faster at: while enough wait for all who ask, every one of them gets some.
fn tries(max: usize) -> impl Iterator<Item = usize> {
    let last = (max > 1).then_some(1);
    let tries = if max > 1 { TRIES } else { max };
    std::iter::repeat_n(max, tries).chain(last)
}

/// Whether no puller has a row.
pub(super) fn unclaimed() -> Document {
    let never = doc! { "$eq": [{ "$type": "$claim" }, "missing"] };
    doc! { "$or": [never, { "$lte": ["$claim.until", now()] }] }
}

/// The URL in a row's id.
fn url(id: &Bson) -> Option<&str> {
    id.as_document()?.get_str("url").ok()
}
