//! Takes spreads, outcomes, claims and replays; gives what is pending, due, dead.
//!
//! A record: `{_id: {subscription, url}, resource, bucket, wanted, settled?, givenUp?, dead?,
//! present, generation, round?, attempts, attempted?, due, notBefore?, demanded?, firstFailure?, since,
//! epoch, claim?, mark?, needs?}`, and
//! derived from these in the same write: `pending`, true or not there.

mod change;
mod claim;
mod dead;
mod effect;
mod lanes;
mod layout;
mod spread;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use flare_core::model::{
    Applied, DeadLetterId, DocumentKey, DocumentUrl, Epoch, LaneState, RecordKind, RecordName,
    ResourceId, Row, RowKey, Spread, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    ClaimRows, ClaimUpdate, EpochGrant, Listing, Page, Pending, PendingQuery, Replay, RowRemoval,
    RowStore, RowUpdate, Scan, SpreadAnswer, SpreadDocuments, spread_in_steps,
};
use flare_core::{Error, ErrorKind, Result};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;

use super::{MongoRepository, RACES, ids_after, limit, lost_race};
use crate::BACKEND;
use crate::error::{self, DUPLICATE_KEY};
use crate::record::{self, Record, now};
#[cfg(test)]
pub(super) use lanes::read_state;
pub(super) use layout::read_row;
use layout::{id, ids, raw_id};

const KIND: RecordKind = RecordKind::Row;

impl MongoRepository {
    /// Reads rows by their ids.
    async fn rows_by_id(
        &self,
        operation: &'static str,
        keys: &[RowKey],
    ) -> Result<HashMap<RowKey, Result<Row>>> {
        let question = self.stored.rows.find(doc! { "_id": { "$in": ids(keys) } });
        let rows = self.connection.each(operation, KIND, question, read_row).await?;
        // One that cannot be read was found by its key, so it has one.
        let key = |read: Result<Row>| match read {
            Ok(row) => Ok((row.key.clone(), Ok(row))),
            Err(error) => match error.unreadable().map(|it| &it.record) {
                Some(RecordName::Row(key)) => Ok((key.clone(), Err(error))),
                _ => Err(error),
            },
        };
        rows.into_iter().map(key).collect()
    }
}

/// How many rows of these there are by `key`, since when and when the first is due: only what the index holds, so
/// that no row is read.
fn counted(rows: Document, key: Bson) -> [Document; 2] {
    let sum = doc! {
        "_id": key,
        "count": { "$sum": 1_i64 },
        "since": { "$min": "$since" },
        "due": { "$min": "$due" },
    };
    [doc! { "$match": rows }, doc! { "$group": sum }]
}

fn read_count(record: Record<'_>) -> Result<Pending> {
    let count = record.small("count")?;
    // A time of a row that is damaged may be anything.
    let time = |field| record.time_if_any(field).ok().flatten();
    Ok(Pending::new(count, time("since"), time("due")))
}

impl MongoRepository {
    /// How much is pending of each subscription: few bytes for each that is behind, so all of them at once.
    fn count_each(&self) -> impl Stream<Item = Result<(SubscriptionId, Pending)>> + Send + '_ {
        let pending = doc! { "pending": true };
        let question =
            self.stored.rows.aggregate(counted(pending, Bson::from("$_id.subscription")));
        let read = |record: Record<'_>| {
            // What has no id of ours is nobody's.
            let id = record.id("_id").ok().map(SubscriptionId::from_bytes);
            Ok((id, read_count(record)?))
        };
        let sums = self.connection.all("pending_each", question, read);
        let sums = stream::once(sums).map_ok(|sums| {
            let known = sums.into_iter().filter_map(|(id, pending)| Some((id?, pending)));
            stream::iter(known.map(Ok))
        });
        sums.try_flatten()
    }
}

#[async_trait]
impl RowStore for MongoRepository {
    async fn store_time(&self) -> Result<Timestamp> {
        self.connection.read_time("store_time").await
    }

    async fn next_epoch(&self) -> Result<EpochGrant> {
        const OPERATION: &str = "next_epoch";
        let next = doc! { "$add": [{ "$ifNull": ["$number", 0_i64] }, 1_i64] };
        let pipeline = vec![doc! { "$set": { "number": next, "at": now() } }];
        for _ in 0..RACES {
            let asked = self.connection.clock.monotonic();
            let counters = &self.stored.counters;
            let call = counters
                .find_one_and_update(doc! { "_id": "epoch" }, pipeline.clone())
                .upsert(true)
                .return_document(ReturnDocument::After);
            match self.connection.reach(OPERATION, async { Ok(call.await) }).await? {
                Ok(Some(counter)) => {
                    let record = Record::new(OPERATION, &counter);
                    let (epoch, at) = (Epoch::new(record.small("number")?), record.time("at")?);
                    self.connection.saw_time(asked, at);
                    return Ok(EpochGrant { epoch, at });
                }
                Ok(None) => {
                    return Err(Error::new(ErrorKind::Corrupt, OPERATION)
                        .with_backend(BACKEND)
                        .with_detail("the server gave no counter back"));
                }
                Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {}
                Err(error) => return Err(error::from_driver(OPERATION, error)),
            }
        }
        Err(lost_race(OPERATION))
    }

    async fn spread_rows(&self, spreads: Vec<Spread>) -> Result<()> {
        self.spread(spreads).await
    }

    async fn spread_documents(&self, request: SpreadDocuments) -> Result<SpreadAnswer> {
        spread_in_steps(self, request).await
    }

    async fn rows(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>> {
        let found = self.rows_by_id("rows", &keys).await?;
        keys.iter().map(|key| found.get(key).cloned().transpose()).collect()
    }

    async fn rows_of(
        &self,
        documents: Vec<DocumentKey>,
        after: Option<RowKey>,
        most: usize,
    ) -> Result<Listing<Row>> {
        const OPERATION: &str = "rows_of";
        let these = of_documents(documents, after.as_ref());
        if these.is_empty() || most == 0 {
            return Ok(Listing::new(Vec::new(), 0));
        }
        let question = self.stored.rows.find(doc! { "$or": these });
        let question = question.sort(doc! { "_id.url": 1, "_id.subscription": 1 });
        let question = question.limit(limit(most));
        let read = self.connection.each(OPERATION, KIND, question, read_row).await?;
        let total = read.len() as u64;
        Listing::of_read(read, total)
    }

    fn pending_rows(&self, query: PendingQuery) -> Scan<'_, Row> {
        let mut pending = doc! {
            "pending": true,
            "_id.subscription": record::id(query.subscription.as_bytes()),
            "bucket": {
                "$gte": i64::from(query.buckets.first.number()),
                "$lte": i64::from(query.buckets.last.number()),
            },
        };
        if query.demanded {
            pending.insert("demanded", true);
        }
        if let Some(time) = query.due_by {
            pending.insert("due", doc! { "$lte": record::time(time) });
        }
        let rows = &self.stored.rows;
        let question = move |passed: u64, most: usize| {
            // All of it with the first answer, as far as it fits.
            let first = u32::try_from(most).unwrap_or(u32::MAX).max(1);
            let due = rows.find(pending.clone()).sort(doc! { "due": 1 });
            due.skip(passed).limit(limit(most)).batch_size(first)
        };
        self.connection.first("pending_rows", KIND, query.limit, question, read_row)
    }

    async fn count_pending(&self, subscription: Option<SubscriptionId>) -> Result<Pending> {
        const OPERATION: &str = "count_pending";
        let mut pending = doc! { "pending": true };
        if let Some(id) = subscription {
            pending.insert("_id.subscription", record::id(id.as_bytes()));
        }
        let question = self.stored.rows.aggregate(counted(pending, Bson::Null));
        let sums = self.connection.all(OPERATION, question, read_count);
        Ok(sums.await?.pop().unwrap_or_default())
    }

    fn pending_each(&self) -> Scan<'_, (SubscriptionId, Pending)> {
        self.count_each().boxed()
    }

    async fn apply_rows(&self, epoch: Epoch, updates: Vec<RowUpdate>) -> Vec<Result<Applied>> {
        self.apply(epoch, updates).await
    }

    async fn claim_rows(&self, request: ClaimRows) -> Result<Vec<Row>> {
        self.claim(request).await
    }

    async fn demand_rows(&self, subscription: SubscriptionId, max: usize) -> Result<u64> {
        self.demand(subscription, max).await
    }

    async fn apply_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>> {
        self.settle_claims(updates).await
    }

    async fn expedite_rows(&self, subscription: SubscriptionId, most: usize) -> Result<u64> {
        const OPERATION: &str = "expedite_rows";
        let rows = &self.stored.rows;
        let later = doc! {
            "pending": true,
            "_id.subscription": record::id(subscription.as_bytes()),
            "$expr": { "$and": [{ "$gt": ["$due", change::earliest()] }, claim::unclaimed()] },
        };
        let question = rows.find(later.clone()).projection(doc! { "_id": 1 }).limit(limit(most));
        let keys = self.connection.all(OPERATION, question, raw_id).await?;
        if keys.is_empty() {
            return Ok(0);
        }
        let mut these = later;
        these.insert("_id", doc! { "$in": keys });
        let due = doc! { "$set": { "due": change::earliest() } };
        let call = rows.update_many(these, vec![due]);
        let expedited = self.connection.run(OPERATION, call).await?.modified_count;
        // Zero would mean that none is left; these may have become due by themselves.
        Ok(expedited.max(1))
    }

    async fn dead_letters(&self, subscription: SubscriptionId, page: Page) -> Result<Listing<Row>> {
        self.list_dead(subscription, page).await
    }

    async fn find_dead_letters(
        &self,
        subscription: SubscriptionId,
        ids: Vec<DeadLetterId>,
    ) -> Result<Vec<Option<Row>>> {
        self.find_dead(subscription, ids).await
    }

    async fn replay_rows(&self, replays: Vec<Replay>) -> Vec<Result<bool>> {
        self.replay(replays).await
    }

    async fn drop_dead_letters(&self, until: Timestamp, most: usize) -> Result<u64> {
        self.drop_dead(until, most).await
    }

    async fn remove_rows(&self, subscription: SubscriptionId, most: usize) -> Result<u64> {
        const OPERATION: &str = "remove_rows";
        let range = ids_after("subscription", record::id(subscription.as_bytes()), "url", None);
        let rows = &self.stored.rows;
        let some = rows.find(doc! { "_id": range }).projection(doc! { "_id": 1 });
        let keys = self.connection.all(OPERATION, some.limit(limit(most)), raw_id).await?;
        if keys.is_empty() {
            return Ok(0);
        }
        let call = rows.delete_many(doc! { "_id": { "$in": keys } });
        let removed = self.connection.run(OPERATION, call).await?.deleted_count;
        // Zero would mean that none is left; somebody else may have removed them all.
        Ok(removed.max(1))
    }

    async fn remove_settled_rows(&self, rows: Vec<(RowKey, Version)>) -> Vec<Result<RowRemoval>> {
        match self.remove_settled(&rows).await {
            Ok(removals) => removals.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); rows.len()],
        }
    }

    async fn store_lanes(&self, epoch: Epoch, lanes: Vec<LaneState>) -> Vec<Result<Applied>> {
        self.store_lane_states(epoch, lanes).await
    }

    async fn lanes(&self, subscription: SubscriptionId) -> Result<Listing<LaneState>> {
        self.lane_states(subscription).await
    }

    fn scan_lanes(&self) -> Scan<'_, LaneState> {
        self.scan_lane_states()
    }
}

/// Which rows documents have, after one of them: one condition per resource, and one for what is left of
/// the document that one is of.
fn of_documents(documents: Vec<DocumentKey>, after: Option<&RowKey>) -> Vec<Document> {
    let mut urls: BTreeMap<ResourceId, BTreeSet<DocumentUrl>> = BTreeMap::new();
    let mut these = Vec::new();
    for DocumentKey { resource, url } in documents {
        match after {
            Some(after) if url < after.url => {}
            Some(after) if url == after.url => these.push(doc! {
                "resource": record::id(resource.as_bytes()),
                "_id.url": url.as_str(),
                "_id.subscription": { "$gt": record::id(after.subscription.as_bytes()) },
            }),
            _ => drop(urls.entry(resource).or_default().insert(url)),
        }
    }
    these.extend(urls.into_iter().map(|(resource, urls)| {
        let urls: Vec<&str> = urls.iter().map(DocumentUrl::as_str).collect();
        doc! { "resource": record::id(resource.as_bytes()), "_id.url": { "$in": urls } }
    }));
    these
}

impl MongoRepository {
    async fn remove_settled(&self, rows: &[(RowKey, Version)]) -> Result<Vec<RowRemoval>> {
        const OPERATION: &str = "remove_settled_rows";
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<RowKey> = rows.iter().map(|(key, _)| key.clone()).collect();
        let before = self.rows_by_id(OPERATION, &keys).await?;
        let removable = |(key, version): &(RowKey, Version)| -> Document {
            doc! { "_id": id(key), "wanted": { "$lte": record::version(*version) } }
        };
        let each: Vec<Document> = rows.iter().map(removable).collect();
        let call = self.stored.rows.delete_many(doc! {
            "$or": each,
            "pending": { "$exists": false },
            "dead": { "$exists": false },
        });
        self.connection.run(OPERATION, call).await?;
        let after = self.rows_by_id(OPERATION, &keys).await?;
        let removal = |key: &RowKey| match (before.contains_key(key), after.contains_key(key)) {
            (_, true) => RowRemoval::Kept,
            (true, false) => RowRemoval::Removed,
            (false, false) => RowRemoval::Missing,
        };
        Ok(keys.iter().map(removal).collect())
    }
}
