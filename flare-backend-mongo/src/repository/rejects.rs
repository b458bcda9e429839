//! Takes messages that became no document; keeps, lists, finds and forgets them.
//!
//! A record: `{_id: {consumer, id}, rejectedAt, reject (JSON), needs?}`. They are no part of their consumer's record:
//! a thousand of them, 64 KiB each, are more than one record may hold. So they and their consumer are written one
//! after the other: a removal forgets the consumer first and then its rejects, and a node that keeps some looks for
//! their consumer afterwards. One of both sees the other; what a crash in between leaves a cleanup removes.

use std::collections::{BTreeMap, BTreeSet};

use flare_core::Result;
use flare_core::model::{ConsumerId, RecordKind, Reject, RejectId, Timestamp};
use flare_core::port::{Listing, Page};
use mongodb::bson::{Bson, Document, doc};

use super::consumers::unwritable;
use super::{MongoRepository, RACES, ids_after, limit, lost_race};
use crate::bulk::{Update, Updated};
use crate::record::{self, Record};

const KIND: RecordKind = RecordKind::Reject;

/// A reject's id in the store. The order of the fields matters.
fn id(consumer: ConsumerId, reject: RejectId) -> Bson {
    let (consumer, reject) = (record::id(consumer.as_bytes()), record::id(reject.as_bytes()));
    doc! { "consumer": consumer, "id": reject }.into()
}

fn ids(consumer: ConsumerId, rejects: &[RejectId]) -> Document {
    let ids: Vec<Bson> = rejects.iter().map(|reject| id(consumer, *reject)).collect();
    doc! { "_id": { "$in": ids } }
}

/// All of a consumer, as the index by time has them.
fn of(consumer: ConsumerId) -> Document {
    doc! { "_id.consumer": record::id(consumer.as_bytes()) }
}

/// The order of that index; all of one consumer, ids go by those of the rejects.
fn oldest_first() -> Document {
    doc! { "rejectedAt": 1, "_id": 1 }
}

pub(super) fn read_reject(record: Record<'_>) -> Result<Reject> {
    let id = record.inner("_id")?;
    let consumer = ConsumerId::from_bytes(id.id("consumer")?);
    let reject = RejectId::from_bytes(id.id("id")?);
    Reject::from_stored(reject, consumer, record.time("rejectedAt")?, record.text("reject")?)
        .map_err(|error| record.corrupt("reject").with_source(error))
}

/// What is stored of a reject beside its id.
pub(super) fn write_reject(operation: &'static str, reject: &Reject) -> Result<Document> {
    let text = reject.stored().map_err(|error| unwritable(operation, error))?;
    Ok(doc! { "rejectedAt": record::time(reject.rejected_at), "reject": text })
}

/// Takes the place of what is there. What a newer version said of that one is not said of this one.
fn put(operation: &'static str, reject: &Reject) -> Result<Update> {
    let set = write_reject(operation, reject)?;
    let change = doc! { "$set": set, "$unset": { "needs": "" } }.into();
    Ok(Update { filter: doc! { "_id": id(reject.consumer, reject.id) }, change, upsert: true })
}

impl MongoRepository {
    pub(super) async fn keep_rejects(&self, rejects: Vec<Reject>, most: usize) -> Result<()> {
        const OPERATION: &str = "insert_rejects";
        if rejects.is_empty() {
            return Ok(());
        }
        let consumers: BTreeSet<ConsumerId> = rejects.iter().map(|it| it.consumer).collect();
        // A message that was received twice is in here twice: the later one counts.
        let mut open = BTreeMap::new();
        for reject in &rejects {
            open.insert((reject.consumer, reject.id), put(OPERATION, reject)?);
        }
        self.put_all(OPERATION, open.into_values().collect()).await?;
        let there = self.consumers_among(OPERATION, &consumers).await?;
        for consumer in consumers {
            if there.contains(&consumer) {
                self.keep_last(OPERATION, consumer, most).await?;
            } else {
                self.forget_rejects(OPERATION, consumer).await?;
            }
        }
        Ok(())
    }

    async fn put_all(&self, operation: &'static str, mut open: Vec<Update>) -> Result<()> {
        for _ in 0..RACES {
            let put = self.connection.update_each(operation, &self.stored.rejects, open.clone());
            let mut again = Vec::new();
            for (answer, update) in put.await.into_iter().zip(open) {
                // Another node made the record at the same moment: now it is there.
                if answer? == Updated::Duplicate {
                    again.push(update);
                }
            }
            if again.is_empty() {
                return Ok(());
            }
            open = again;
        }
        Err(lost_race(operation))
    }

    /// Which of these consumers are there, whether or not they can be read.
    async fn consumers_among(
        &self,
        operation: &'static str,
        consumers: &BTreeSet<ConsumerId>,
    ) -> Result<BTreeSet<ConsumerId>> {
        let ids: Vec<Bson> = consumers.iter().map(|id| record::id(id.as_bytes())).collect();
        let question = self.stored.consumers.find(doc! { "_id": { "$in": ids } });
        let question = question.projection(doc! { "_id": 1 });
        let read = |record: Record<'_>| Ok(ConsumerId::from_bytes(record.id("_id")?));
        Ok(self.connection.all(operation, question, read).await?.into_iter().collect())
    }

    /// Forgets all but the last of a consumer.
    async fn keep_last(
        &self,
        operation: &'static str,
        consumer: ConsumerId,
        most: usize,
    ) -> Result<()> {
        let rejects = &self.stored.rejects;
        // Of numbers alone: a time that is damaged is compared with none.
        let mut dated = of(consumer);
        dated.insert("rejectedAt", doc! { "$gte": i64::MIN });
        let question = rejects
            .find_one(dated)
            .sort(doc! { "rejectedAt": -1, "_id": -1 })
            .skip(u32::try_from(most).unwrap_or(u32::MAX).into())
            .projection(doc! { "_id": 1, "rejectedAt": 1 });
        let Some(first) = self.connection.run(operation, question).await? else { return Ok(()) };
        // By the time, and not by their ids: one that was rejected anew meanwhile stays.
        let (at, id) = (first.get("rejectedAt").cloned(), first.get("_id").cloned());
        let mut beyond = of(consumer);
        let older = doc! { "rejectedAt": { "$lt": at.clone() } };
        let beside = doc! { "rejectedAt": at, "_id": { "$lte": id } };
        beyond.insert("$or", vec![older, beside]);
        self.connection.run(operation, rejects.delete_many(beyond)).await.map(|_| ())
    }

    /// Forgets all of a consumer that is not there.
    pub(super) async fn forget_rejects(
        &self,
        operation: &'static str,
        consumer: ConsumerId,
    ) -> Result<()> {
        let all = ids_after("consumer", record::id(consumer.as_bytes()), "id", None);
        let call = self.stored.rejects.delete_many(doc! { "_id": all });
        self.connection.run(operation, call).await.map(|_| ())
    }

    pub(super) async fn page_of_rejects(
        &self,
        consumer: ConsumerId,
        page: Page,
    ) -> Result<Listing<Reject>> {
        const OPERATION: &str = "list_rejects";
        let rejects = &self.stored.rejects;
        let count = rejects.count_documents(of(consumer));
        let total = self.connection.run(OPERATION, count).await?;
        if page.limit == 0 || page.offset >= total {
            return Ok(Listing::new(Vec::new(), total));
        }
        let question = rejects
            .find(of(consumer))
            .sort(oldest_first())
            .skip(page.offset)
            .limit(i64::from(page.limit));
        Listing::of_read(self.connection.each(OPERATION, KIND, question, read_reject).await?, total)
    }

    pub(super) async fn find_rejects(
        &self,
        consumer: ConsumerId,
        wanted: &[RejectId],
    ) -> Result<Vec<Reject>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let question = self.stored.rejects.find(ids(consumer, wanted));
        let found = self.connection.each("rejects", KIND, question, read_reject).await?;
        found.into_iter().collect()
    }

    pub(super) async fn drop_rejects(
        &self,
        consumer: ConsumerId,
        unwanted: &[RejectId],
    ) -> Result<()> {
        if unwanted.is_empty() {
            return Ok(());
        }
        let call = self.stored.rejects.delete_many(ids(consumer, unwanted));
        self.connection.run("remove_rejects", call).await.map(|_| ())
    }

    pub(super) async fn drop_old_rejects(
        &self,
        consumer: ConsumerId,
        before: Timestamp,
        most: usize,
    ) -> Result<u64> {
        const OPERATION: &str = "expire_rejects";
        // To the server no limit is none at all.
        if most == 0 {
            return Ok(0);
        }
        let rejects = &self.stored.rejects;
        let mut old = of(consumer);
        old.insert("rejectedAt", doc! { "$lt": record::time(before) });
        let question = rejects.find(old.clone()).sort(oldest_first()).limit(limit(most));
        let question = question.projection(doc! { "_id": 1 });
        let read = |record: Record<'_>| Ok(record.any("_id").cloned());
        let found = self.connection.all(OPERATION, question, read).await?;
        let found: Vec<Bson> = found.into_iter().flatten().collect();
        if found.is_empty() {
            return Ok(0);
        }
        // One that was rejected anew meanwhile stays.
        old.insert("_id", doc! { "$in": found });
        Ok(self.connection.run(OPERATION, rejects.delete_many(old)).await?.deleted_count)
    }
}
