//! Takes long work; gives it to whoever goes on with it.
//!
//! A record: `{_id, kind, subject, cursor?, epoch, due, createdAt, needs?}`.

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{Applied, Epoch, Job, JobId, JobKind, RecordKind, RecordName, Timestamp};
use flare_core::port::{JobStore, Listing, Page, Scan};
use mongodb::bson::{Document, doc};
use mongodb::options::ReturnDocument;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};

use super::{MongoRepository, RACES, limit, lost_race};
use crate::error::{self, DUPLICATE_KEY};
use crate::record::{self, Record};

const KIND: RecordKind = RecordKind::Job;

/// All of them, in a way that has the server go by their ids.
fn all() -> Document {
    doc! { "_id": { "$gte": record::bytes(&[]) } }
}

pub(super) fn read_job(record: Record<'_>) -> Result<Job> {
    let kind: StrDeserializer<'_, ValueError> = record.text("kind")?.into_deserializer();
    let kind = Deserialize::deserialize(kind).map_err(|_| record.corrupt("kind"))?;
    let id = JobId::from_bytes(record.id("_id")?);
    let mut job = Job::new(id, kind, record.text("subject")?, record.time("createdAt")?);
    job.cursor = record.text_if_any("cursor")?.map(str::to_owned);
    job.epoch = Epoch::new(record.small("epoch")?);
    job.due = record.time("due")?;
    Ok(job)
}

/// A kind as it is stored.
fn written(kind: JobKind) -> String {
    let kind = serde_json::to_value(kind).ok();
    kind.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

impl MongoRepository {
    /// Updates a job that no epoch above `epoch` has written, or removes it without an update; says
    /// why it did not.
    async fn fenced_job(
        &self,
        operation: &'static str,
        epoch: Epoch,
        id: JobId,
        update: Option<Document>,
    ) -> Result<Applied> {
        let id = record::id(id.as_bytes());
        for _ in 0..RACES {
            let mine = doc! { "_id": &id, "epoch": { "$lte": record::count(epoch.get()) } };
            let met = match &update {
                Some(update) => {
                    let call = self.stored.jobs.update_one(mine, update.clone());
                    self.connection.run(operation, call).await?.matched_count
                }
                None => {
                    let call = self.stored.jobs.delete_one(mine);
                    self.connection.run(operation, call).await?.deleted_count
                }
            };
            if met == 1 {
                return Ok(Applied::Done);
            }
            let question = self.stored.jobs.find_one(doc! { "_id": &id });
            let question = question.projection(doc! { "epoch": 1 });
            let Some(found) = self.connection.run(operation, question).await? else {
                return Ok(Applied::Missing);
            };
            let later = Epoch::new(Record::new(operation, &found).small("epoch")?);
            if later > epoch {
                return Ok(Applied::Fenced { epoch: later });
            }
        }
        Err(lost_race(operation))
    }
}

impl MongoRepository {
    /// Takes the place of a job for the same kind and subject that is damaged, so that nobody would
    /// ever do it; tells whether there was one.
    async fn replace_damaged(&self, operation: &'static str, job: &Document) -> Result<bool> {
        let jobs = &self.stored.jobs;
        let (kind, subject) = (job.get("kind"), job.get("subject"));
        let question = jobs.find(doc! { "kind": kind, "subject": subject }).limit(1);
        let found = self.connection.each(operation, KIND, question, read_job).await?.pop();
        let damaged = match found {
            Some(Err(error)) => match error.unreadable() {
                Some(unreadable) if !unreadable.is_newer() => unreadable.record.clone(),
                Some(_) => return Ok(false),
                None => return Err(error),
            },
            _ => return Ok(false),
        };
        let RecordName::Job(id) = damaged else { return Ok(false) };
        let old = jobs.delete_one(doc! { "_id": record::id(id.as_bytes()) });
        self.connection.run(operation, old).await?;
        let call = jobs.insert_one(job.clone());
        match self.connection.reach(operation, async { Ok(call.await) }).await? {
            Ok(_) => Ok(true),
            // Somebody else was faster.
            Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => Ok(false),
            Err(error) => Err(error::from_driver(operation, error)),
        }
    }
}

#[async_trait]
impl JobStore for MongoRepository {
    async fn insert_job(&self, job: Job) -> Result<bool> {
        const OPERATION: &str = "insert_job";
        let kind = written(job.kind);
        let mut record = doc! {
            "_id": record::id(job.id.as_bytes()),
            "kind": kind,
            "subject": job.subject,
            "epoch": record::count(job.epoch.get()),
            "due": record::time(job.due),
            "createdAt": record::time(job.created_at),
        };
        if let Some(cursor) = job.cursor {
            record.insert("cursor", cursor);
        }
        let jobs = &self.stored.jobs;
        let again = record.clone();
        let call = jobs.insert_one(record);
        match self.connection.reach(OPERATION, async { Ok(call.await) }).await? {
            Ok(_) => Ok(true),
            Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {
                self.replace_damaged(OPERATION, &again).await
            }
            Err(error) => Err(error::from_driver(OPERATION, error)),
        }
    }

    fn due_jobs(&self, due_by: Timestamp, most: usize) -> Scan<'_, Job> {
        let due = doc! { "due": { "$lte": record::time(due_by) } };
        let jobs = &self.stored.jobs;
        let question = move |passed: u64, most: usize| {
            let due = jobs.find(due.clone()).sort(doc! { "due": 1, "_id": 1 });
            due.skip(passed).limit(limit(most))
        };
        self.connection.first("due_jobs", KIND, most, question, read_job)
    }

    async fn job(&self, kind: JobKind, subject: &str) -> Result<Option<Job>> {
        const OPERATION: &str = "job";
        let this = doc! { "kind": written(kind), "subject": subject };
        let found = self.connection.run(OPERATION, self.stored.jobs.find_one(this)).await?;
        found.map(|found| Record::new(OPERATION, &found).whole(KIND, read_job)).transpose()
    }

    async fn list_jobs(&self, page: Page) -> Result<Listing<Job>> {
        const OPERATION: &str = "list_jobs";
        let jobs = &self.stored.jobs;
        let total = self.connection.run(OPERATION, jobs.count_documents(all())).await?;
        if page.limit == 0 || page.offset >= total {
            return Ok(Listing::new(Vec::new(), total));
        }
        let question = jobs.find(all()).sort(doc! { "_id": 1 });
        let question = question.skip(page.offset).limit(i64::from(page.limit));
        Listing::of_read(self.connection.each(OPERATION, KIND, question, read_job).await?, total)
    }

    async fn claim_job(
        &self,
        epoch: Epoch,
        id: JobId,
        due_by: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>> {
        const OPERATION: &str = "claim_job";
        let epoch = record::count(epoch.get());
        let free = doc! {
            "_id": record::id(id.as_bytes()),
            "epoch": { "$lte": &epoch },
            "due": { "$lte": record::time(due_by) },
        };
        let taken = doc! { "$set": { "epoch": epoch, "due": record::time(until) } };
        let call = self.stored.jobs.find_one_and_update(free, taken);
        let call = call.return_document(ReturnDocument::After);
        let claimed = self.connection.run(OPERATION, call).await?;
        claimed.map(|claimed| Record::new(OPERATION, &claimed).whole(KIND, read_job)).transpose()
    }

    async fn advance_job(
        &self,
        epoch: Epoch,
        id: JobId,
        cursor: Option<String>,
        due: Timestamp,
    ) -> Result<Applied> {
        let mut update = doc! { "$set": {
            "epoch": record::count(epoch.get()),
            "due": record::time(due),
        } };
        match cursor {
            Some(cursor) => {
                update.get_document_mut("$set").map(|set| set.insert("cursor", cursor)).ok();
            }
            None => {
                update.insert("$unset", doc! { "cursor": "" });
            }
        }
        self.fenced_job("advance_job", epoch, id, Some(update)).await
    }

    async fn finish_job(&self, epoch: Epoch, id: JobId) -> Result<Applied> {
        self.fenced_job("finish_job", epoch, id, None).await
    }
}
