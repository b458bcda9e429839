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

impl MongoRepository {
    pub(super) async fn claim(&self, request: ClaimRows) -> Result<Vec<Row>> {
        const OPERATION: &str = "claim_rows";
        if request.max == 0 {
            return Ok(Vec::new());
        }
        let rows = &self.stored.rows;
        let (keys, these) = self.claimable(OPERATION, request.subscription, request.max).await?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let until = doc! { "$add": [now(), nanos(request.holds_for)] };
        let claim = record::id(request.claim.as_bytes());
        let (no, maybe) = (word(Present::No), word(Present::Maybe));
        let set = doc! { "$set": {
            "claim": { "id": &claim, "until": &until, "held": "$present" },
            "due": until,
            "present": { "$cond": [{ "$eq": ["$present", no] }, maybe, "$present"] },
        } };
        self.connection.run(OPERATION, rows.update_many(these, vec![set])).await?;
        let mine = rows.find(doc! { "_id": { "$in": &keys }, "claim.id": claim });
        // Those that cannot be read nobody is handed, and nobody else is for as long as the claim holds.
        let read = self.connection.each(OPERATION, KIND, mine, read_row).await?;
        let mut handed: Vec<Row> = read.into_iter().flatten().collect();
        // In the order they were due in, before the claim.
        let places: HashMap<&str, usize> =
            keys.iter().enumerate().filter_map(|(place, key)| Some((url(key)?, place))).collect();
        handed.sort_by_key(|row| places.get(row.key.url.as_str()).copied());
        Ok(handed)
    }

    pub(super) async fn demand(&self, subscription: SubscriptionId, max: usize) -> Result<u64> {
        const OPERATION: &str = "demand_rows";
        if max == 0 {
            return Ok(0);
        }
        let (keys, these) = self.claimable(OPERATION, subscription, max).await?;
        if keys.is_empty() {
            return Ok(0);
        }
        let mark = doc! { "$set": { "demanded": true } };
        let marked = self.connection.run(OPERATION, self.stored.rows.update_many(these, mark));
        Ok(marked.await?.modified_count)
    }

    /// Some rows that a puller may have, earliest due first, and the condition that they are so still.
    async fn claimable(
        &self,
        operation: &'static str,
        subscription: SubscriptionId,
        max: usize,
    ) -> Result<(Vec<Bson>, Document)> {
        let free = doc! {
            "pending": true,
            "_id.subscription": record::id(subscription.as_bytes()),
            "demanded": { "$exists": false },
            "$expr": { "$and": [{ "$lte": ["$due", now()] }, unclaimed()] },
        };
        let rows = &self.stored.rows;
        let question = rows.find(free.clone()).sort(doc! { "due": 1 });
        let question = question.projection(doc! { "_id": 1 }).limit(limit(max));
        let keys = self.connection.all(operation, question, raw_id).await?;
        let mut these = free;
        these.insert("_id", doc! { "$in": &keys });
        Ok((keys, these))
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

/// Whether no puller has a row.
pub(super) fn unclaimed() -> Document {
    let never = doc! { "$eq": [{ "$type": "$claim" }, "missing"] };
    doc! { "$or": [never, { "$lte": ["$claim.until", now()] }] }
}

/// The URL in a row's id.
fn url(id: &Bson) -> Option<&str> {
    id.as_document()?.get_str("url").ok()
}
