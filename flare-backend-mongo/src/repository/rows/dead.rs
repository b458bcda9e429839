//! Takes dead letters; lists, finds, replays and forgets them.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::model::{DeadLetterId, Row, SubscriptionId, Timestamp};
use flare_core::port::{Listing, Page, Replay};
use mongodb::bson::{Bson, doc};

use super::super::waves::waves;
use super::super::{MongoRepository, limit};
use super::layout::{raw_id, read_row};
use super::{KIND, change};
use crate::bulk::Updated;
use crate::record;

impl MongoRepository {
    pub(super) async fn list_dead(
        &self,
        subscription: SubscriptionId,
        page: Page,
    ) -> Result<Listing<Row>> {
        const OPERATION: &str = "dead_letters";
        let rows = &self.stored.rows;
        let dead = doc! {
            "_id.subscription": record::id(subscription.as_bytes()),
            "dead": { "$exists": true },
        };
        let total = self.connection.run(OPERATION, rows.count_documents(dead.clone())).await?;
        if page.limit == 0 || page.offset >= total {
            return Ok(Listing::new(Vec::new(), total));
        }
        let question = rows
            .find(dead)
            .sort(doc! { "dead.diedAt": 1, "dead.id": 1 })
            .skip(page.offset)
            .limit(i64::from(page.limit));
        Listing::of_read(self.connection.each(OPERATION, KIND, question, read_row).await?, total)
    }

    pub(super) async fn find_dead(
        &self,
        subscription: SubscriptionId,
        wanted: Vec<DeadLetterId>,
    ) -> Result<Vec<Option<Row>>> {
        let numbers: Vec<Bson> = wanted.iter().map(|id| record::id(id.as_bytes())).collect();
        let question = self.stored.rows.find(doc! {
            "dead.id": { "$in": numbers },
            "_id.subscription": record::id(subscription.as_bytes()),
            "dead": { "$exists": true },
        });
        let found = self.connection.each("find_dead_letters", KIND, question, read_row).await?;
        let found: Vec<Row> = found.into_iter().collect::<Result<_>>()?;
        let found: HashMap<DeadLetterId, Row> =
            found.into_iter().filter_map(|row| Some((row.dead.as_ref()?.id, row))).collect();
        Ok(wanted.iter().map(|id| found.get(id).cloned()).collect())
    }

    pub(super) async fn replay(&self, replays: Vec<Replay>) -> Vec<Result<bool>> {
        let rows = &self.stored.rows;
        let mut answers: Vec<Result<bool>> = vec![Ok(false); replays.len()];
        for wave in waves(replays, |replay| replay.key.clone()) {
            let updates = wave.iter().map(|(_, it)| change::replay(&it.key, it.version)).collect();
            let replayed = self.connection.update_each("replay_rows", rows, updates).await;
            for ((place, _), replayed) in wave.into_iter().zip(replayed) {
                answers[place] = replayed.map(|it| matches!(it, Updated::Matched { .. }));
            }
        }
        answers
    }

    pub(super) async fn drop_dead(&self, until: Timestamp, most: usize) -> Result<u64> {
        const OPERATION: &str = "drop_dead_letters";
        let rows = &self.stored.rows;
        let old = doc! {
            "dead.diedAt": { "$lte": record::time(until) },
            "dead": { "$exists": true },
        };
        let question = rows.find(old.clone()).projection(doc! { "_id": 1 }).limit(limit(most));
        let keys = self.connection.all(OPERATION, question, raw_id).await?;
        if keys.is_empty() {
            return Ok(0);
        }
        let mut these = old;
        these.insert("_id", doc! { "$in": keys });
        let call = rows.update_many(these, doc! { "$unset": { "dead": "" } });
        let dropped = self.connection.run(OPERATION, call).await?.modified_count;
        // Zero would mean that none is left; these may have been replayed meanwhile.
        Ok(dropped.max(1))
    }
}
