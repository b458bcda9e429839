//! Takes pullers' claims; hands each pending row to one of them at a time, by the server's clock.

use flare_core::Result;
use flare_core::model::{Applied, ClaimEffect, Row, RowEffect};
use flare_core::port::{ClaimRows, ClaimUpdate};
use futures::StreamExt;
use futures::stream;
use mongodb::bson::doc;
use mongodb::options::ReturnDocument;

use super::super::{MongoRepository, limit, nanos, unsupported};
use super::layout::{id, raw_id, read_row};
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
        let free = doc! {
            "pending": true,
            "_id.subscription": record::id(request.subscription.as_bytes()),
            "$expr": { "$and": [
                { "$lte": ["$due", now()] },
                { "$or": [
                    { "$eq": [{ "$type": "$claim" }, "missing"] },
                    { "$lte": ["$claim.until", now()] },
                ] },
            ] },
        };
        let question = rows
            .find(free.clone())
            .sort(doc! { "due": 1 })
            .projection(doc! { "_id": 1 })
            .limit(limit(request.max));
        let keys = self.connection.all(OPERATION, question, raw_id).await?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut these = free;
        these.insert("_id", doc! { "$in": &keys });
        let until = doc! { "$add": [now(), nanos(request.holds_for)] };
        let claim = record::id(request.claim.as_bytes());
        let set = doc! { "$set": { "claim": { "id": &claim, "until": until } } };
        self.connection.run(OPERATION, rows.update_many(these, vec![set])).await?;
        let mine = rows.find(doc! { "_id": { "$in": keys }, "claim.id": claim });
        let mine = mine.sort(doc! { "due": 1 });
        // Those that cannot be read nobody is handed, and nobody else is for as long as the claim holds.
        let read = self.connection.each(OPERATION, KIND, mine, read_row).await?;
        Ok(read.into_iter().flatten().collect())
    }

    pub(super) async fn settle_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>> {
        let settled = updates.into_iter().map(|update| self.settle_claim(update));
        stream::iter(settled).buffered(SIDE_BY_SIDE).collect().await
    }

    async fn settle_claim(&self, update: ClaimUpdate) -> Result<Applied> {
        const OPERATION: &str = "apply_claims";
        let ClaimUpdate { key, claim, effect } = update;
        let (pipeline, version) = match effect {
            ClaimEffect::Release => (Some(vec![doc! { "$set": { "claim": "$$REMOVE" } }]), None),
            ClaimEffect::Settle { version, present } => {
                let settle = RowEffect::Settle { version, present };
                (change::settle_claimed(&settle), Some(version))
            }
            _ => (None, None),
        };
        let unknown = || unsupported(OPERATION, "this effect is not known here");
        let pipeline = pipeline.ok_or_else(unknown)?;
        let held = doc! {
            "_id": id(&key),
            "claim.id": record::id(claim.as_bytes()),
            "$expr": { "$gt": ["$claim.until", now()] },
        };
        let rows = &self.stored.rows;
        let call = rows
            .find_one_and_update(held, pipeline)
            .return_document(ReturnDocument::Before)
            .projection(doc! { "settled": 1 });
        match self.connection.run(OPERATION, call).await? {
            Some(before) => {
                let settled = Record::new(OPERATION, &before).version_if_any("settled")?;
                let overtaken = version.is_some() && settled >= version;
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
