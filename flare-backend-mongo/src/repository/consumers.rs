//! Takes inputs that documents are pulled from; gives them back, with what their owners stored of them.
//!
//! A record: `{_id, resource, generation, consumer (JSON), epoch?, state? (JSON), needs?}`. `epoch` and `state` are
//! the owner's, all else is the caller's; so a state is stored only where its consumer is, and goes with it.

use async_trait::async_trait;
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, Epoch, Generation, Invalid, RecordKind, Reject,
    RejectId, ResourceId, Timestamp,
};
use flare_core::port::{ConsumerStore, Listing, Page, Replaced, Scan};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;

use super::{MongoRepository, RACES, lost_race};
use crate::BACKEND;
use crate::error::{self, DUPLICATE_KEY};
use crate::record::{self, Record};

const KIND: RecordKind = RecordKind::Consumer;

/// A consumer as it is given to those who ask for one.
pub(super) fn read_consumer(record: Record<'_>) -> Result<Consumer> {
    let id = ConsumerId::from_bytes(record.id("_id")?);
    let resource = ResourceId::from_bytes(record.id("resource")?);
    let generation = Generation::new(record.small("generation")?);
    Consumer::from_stored(id, resource, generation, record.text("consumer")?)
        .map_err(|error| record.corrupt("consumer").with_source(error))
}

/// What an owner stored; an empty state where it has only taken the consumer over.
pub(super) fn read_consumer_state(
    record: Record<'_>,
) -> Result<(ConsumerId, Epoch, ConsumerState)> {
    let id = ConsumerId::from_bytes(record.id("_id")?);
    let epoch = Epoch::new(record.small("epoch")?);
    let state = match record.text_if_any("state")? {
        None => ConsumerState::default(),
        Some(text) => ConsumerState::from_stored(text)
            .map_err(|error| record.corrupt("state").with_source(error))?,
    };
    Ok((id, epoch, state))
}

pub(super) fn write_consumer(operation: &'static str, consumer: &Consumer) -> Result<Document> {
    let text = consumer.stored().map_err(|error| unwritable(operation, error))?;
    Ok(doc! {
        "_id": record::id(consumer.id.as_bytes()),
        "resource": record::id(consumer.resource.as_bytes()),
        "generation": record::count(consumer.generation.get()),
        "consumer": text,
    })
}

/// A value of ours that has no text, which no caller can do anything about.
pub(super) fn unwritable(operation: &'static str, error: Invalid) -> Error {
    Error::new(ErrorKind::Internal, operation).with_backend(BACKEND).with_source(error)
}

fn this(id: ConsumerId) -> Document {
    doc! { "_id": record::id(id.as_bytes()) }
}

/// The same, unless an epoch above this one has it. One that is damaged fences no owner off.
fn this_under(id: ConsumerId, epoch: Epoch) -> Document {
    let above = doc! { "$gt": record::count(epoch.get()) };
    doc! { "_id": record::id(id.as_bytes()), "epoch": { "$not": above } }
}

/// All of them, or those after one. Ids alone, whatever else a host may have put there: only after those can a
/// scan go on.
fn after(id: Option<ConsumerId>) -> Document {
    match id {
        None => doc! { "_id": { "$gte": record::bytes(&[]) } },
        Some(id) => doc! { "_id": { "$gt": record::id(id.as_bytes()) } },
    }
}

/// What belongs to the owner, and to find out whose it is.
fn of_owner() -> Document {
    doc! { "_id": 1, "epoch": 1, "state": 1 }
}

#[async_trait]
impl ConsumerStore for MongoRepository {
    async fn insert_consumer(&self, consumer: Consumer) -> Result<Consumer> {
        const OPERATION: &str = "insert_consumer";
        let record = write_consumer(OPERATION, &consumer)?;
        for _ in 0..RACES {
            let call = self.stored.consumers.insert_one(&record);
            match self.connection.reach(OPERATION, async { Ok(call.await) }).await? {
                Ok(_) => return Ok(consumer),
                Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {
                    if let Some(stored) = self.consumer(consumer.id).await? {
                        return Ok(stored);
                    }
                    // It was removed meanwhile.
                }
                Err(error) => return Err(error::from_driver(OPERATION, error)),
            }
        }
        Err(lost_race(OPERATION))
    }

    async fn consumer(&self, id: ConsumerId) -> Result<Option<Consumer>> {
        let question = self.stored.consumers.find(this(id)).limit(1);
        self.connection.each("consumer", KIND, question, read_consumer).await?.pop().transpose()
    }

    async fn list_consumers(&self, page: Page) -> Result<Listing<Consumer>> {
        const OPERATION: &str = "list_consumers";
        let consumers = &self.stored.consumers;
        let total = self.connection.run(OPERATION, consumers.count_documents(after(None))).await?;
        if page.limit == 0 || page.offset >= total {
            return Ok(Listing::new(Vec::new(), total));
        }
        let question = consumers
            .find(after(None))
            .sort(doc! { "_id": 1 })
            .skip(page.offset)
            .limit(i64::from(page.limit));
        let read = self.connection.each(OPERATION, KIND, question, read_consumer).await?;
        Listing::of_read(read, total)
    }

    fn scan_consumers(&self, from: Option<ConsumerId>) -> Scan<'_, Consumer> {
        let found = &self.stored.consumers;
        let question = async move { found.find(after(from)).sort(doc! { "_id": 1 }).await };
        self.connection.scan("scan_consumers", KIND, question, read_consumer)
    }

    async fn replace_consumer(
        &self,
        generation: Generation,
        consumer: Consumer,
    ) -> Result<Replaced<Consumer>> {
        const OPERATION: &str = "replace_consumer";
        let consumers = &self.stored.consumers;
        let read =
            |record: Record<'_>| Ok((read_consumer(record)?, record.text("consumer")?.to_owned()));
        for _ in 0..RACES {
            let question = consumers.find(this(consumer.id)).limit(1);
            let found = self.connection.each(OPERATION, KIND, question, read).await?.pop();
            let Some((stored, text)) = found.transpose()? else { return Ok(Replaced::Missing) };
            if stored.generation != generation {
                return Ok(Replaced::Conflict(stored));
            }
            let new = stored.replaced_by(consumer.clone());
            let mut set = write_consumer(OPERATION, &new)?;
            for kept in ["_id", "resource"] {
                set.remove(kept);
            }
            // What stays of it was read, so only what was read is written over.
            let mut unchanged = this(consumer.id);
            unchanged.insert("generation", record::count(generation.get()));
            unchanged.insert("consumer", text);
            let call = consumers.update_one(unchanged, doc! { "$set": set });
            if self.connection.run(OPERATION, call).await?.matched_count == 1 {
                return Ok(Replaced::Done(new));
            }
        }
        Err(lost_race(OPERATION))
    }

    async fn remove_consumer(&self, id: ConsumerId, at: Option<Generation>) -> Result<bool> {
        const OPERATION: &str = "remove_consumer";
        let consumers = &self.stored.consumers;
        let mut wanted = this(id);
        if let Some(at) = at {
            wanted.insert("generation", record::count(at.get()));
        }
        let removed = self.connection.run(OPERATION, consumers.delete_one(wanted)).await?;
        if removed.deleted_count == 0 && at.is_some() {
            let question = consumers.find_one(this(id)).projection(doc! { "_id": 1 });
            if self.connection.run(OPERATION, question).await?.is_some() {
                return Ok(false);
            }
        }
        // After the consumer, and also where it is gone already: a node that keeps rejects looks for the consumer
        // afterwards, and a removal that died half-way is gone on with by the next.
        self.forget_rejects(OPERATION, id).await?;
        Ok(true)
    }

    async fn store_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
        state: ConsumerState,
    ) -> Result<Applied> {
        const OPERATION: &str = "store_consumer_state";
        let text = state.stored().map_err(|error| unwritable(OPERATION, error))?;
        let consumers = &self.stored.consumers;
        let stored = doc! { "$set": { "epoch": record::count(epoch.get()), "state": text } };
        for _ in 0..RACES {
            let call = consumers.update_one(this_under(id, epoch), stored.clone());
            if self.connection.run(OPERATION, call).await?.matched_count == 1 {
                return Ok(Applied::Done);
            }
            let question = consumers.find_one(this(id)).projection(doc! { "epoch": 1 });
            let Some(found) = self.connection.run(OPERATION, question).await? else {
                return Ok(Applied::Missing);
            };
            // One without an epoch has taken the place of what was there a moment ago.
            let later = Record::new(OPERATION, &found).number_if_any("epoch")?;
            let later = later.and_then(|later| u64::try_from(later).ok()).map(Epoch::new);
            if let Some(later) = later.filter(|later| *later > epoch) {
                return Ok(Applied::Fenced { epoch: later });
            }
        }
        Err(lost_race(OPERATION))
    }

    async fn claim_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Result<Option<ConsumerState>> {
        const OPERATION: &str = "claim_consumer_state";
        let taken = doc! { "$set": { "epoch": record::count(epoch.get()) } };
        let call = self
            .stored
            .consumers
            .find_one_and_update(this_under(id, epoch), taken)
            .projection(of_owner())
            .return_document(ReturnDocument::After);
        let Some(found) = self.connection.run(OPERATION, call).await? else { return Ok(None) };
        let read = Record::new(OPERATION, &found).whole(KIND, read_consumer_state);
        read.map(|(.., state)| Some(state))
    }

    async fn consumer_states(
        &self,
        ids: Vec<ConsumerId>,
    ) -> Result<Vec<(ConsumerId, Epoch, ConsumerState)>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Bson> = ids.iter().map(|id| record::id(id.as_bytes())).collect();
        let these = doc! { "_id": { "$in": ids }, "epoch": { "$exists": true } };
        let question = self.stored.consumers.find(these).projection(of_owner());
        let read = self.connection.each("consumer_states", KIND, question, read_consumer_state);
        // One that cannot be read is no empty one, and there is no other way to say so.
        read.await?.into_iter().collect()
    }

    async fn insert_rejects(&self, rejects: Vec<Reject>, most: usize) -> Result<()> {
        self.keep_rejects(rejects, most).await
    }

    async fn list_rejects(&self, consumer: ConsumerId, page: Page) -> Result<Listing<Reject>> {
        self.page_of_rejects(consumer, page).await
    }

    async fn rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<Vec<Reject>> {
        self.find_rejects(consumer, &ids).await
    }

    async fn remove_rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<()> {
        self.drop_rejects(consumer, &ids).await
    }

    async fn expire_rejects(
        &self,
        consumer: ConsumerId,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        self.drop_old_rejects(consumer, before, limit).await
    }
}
