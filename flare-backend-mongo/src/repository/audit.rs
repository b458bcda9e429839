//! Takes what operators and nodes did; gives it back, newest first, for as long as it is kept.
//!
//! A record: `{_id, at, subject, entry (JSON), needs?}`.

use async_trait::async_trait;
use flare_core::model::{AuditEntry, AuditEntryId, AuditSubject, RecordKind, Timestamp};
use flare_core::port::{AuditStore, Listing, Page};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Bson, Document, doc};

use super::{MongoRepository, limit};
use crate::BACKEND;
use crate::record::{self, Record};

const KIND: RecordKind = RecordKind::Audit;

/// All of them, in a way that has the server go by their ids.
fn all() -> Document {
    doc! { "_id": { "$gte": record::bytes(&[]) } }
}

pub(super) fn read_audit(record: Record<'_>) -> Result<AuditEntry> {
    let id = AuditEntryId::from_bytes(record.id("_id")?);
    let subject = record.text("subject")?.parse();
    let subject: AuditSubject = subject.map_err(|_| record.corrupt("subject"))?;
    AuditEntry::from_stored(id, record.time("at")?, subject, record.text("entry")?)
        .map_err(|error| record.corrupt("entry").with_source(error))
}

pub(super) fn write_audit(operation: &'static str, entry: &AuditEntry) -> Result<Document> {
    let text = entry.stored().map_err(|source| {
        let error = Error::new(ErrorKind::Internal, operation).with_backend(BACKEND);
        error.with_detail("it cannot be written as JSON").with_source(source)
    })?;
    Ok(doc! {
        "_id": record::id(entry.id.as_bytes()),
        "at": record::time(entry.at),
        "subject": entry.subject.as_str(),
        "entry": text,
    })
}

#[async_trait]
impl AuditStore for MongoRepository {
    async fn insert_audit(&self, entries: Vec<AuditEntry>) -> Result<()> {
        const OPERATION: &str = "insert_audit";
        let records = entries.iter().map(|entry| write_audit(OPERATION, entry));
        let records = records.collect::<Result<Vec<_>>>()?;
        let stored = self.connection.insert_each(OPERATION, &self.stored.audit, records).await;
        // One that is there already is a duplicate, and no error.
        stored.into_iter().try_for_each(|stored| stored.map(drop))
    }

    async fn list_audit(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Result<Listing<AuditEntry>> {
        const OPERATION: &str = "list_audit";
        let audit = &self.stored.audit;
        let wanted = subject.map(|subject| doc! { "subject": subject.as_str() });
        let wanted = wanted.unwrap_or_else(all);
        let count = audit.count_documents(wanted.clone());
        let total = self.connection.run(OPERATION, count).await?;
        if page.limit == 0 || page.offset >= total {
            return Ok(Listing::new(Vec::new(), total));
        }
        let question = audit
            .find(wanted)
            .sort(doc! { "_id": -1 })
            .skip(page.offset)
            .limit(i64::from(page.limit));
        Listing::of_read(self.connection.each(OPERATION, KIND, question, read_audit).await?, total)
    }

    async fn trim_audit(&self, keep: u64, before: Timestamp, most: usize) -> Result<u64> {
        const OPERATION: &str = "trim_audit";
        // To the server no limit is none at all.
        if most == 0 {
            return Ok(0);
        }
        let audit = &self.stored.audit;
        let mut old = vec![doc! { "at": { "$lt": record::time(before) } }];
        // No collection has more than the server can count.
        let keep = keep.min(i64::MAX.unsigned_abs());
        let first = audit.find_one(all()).sort(doc! { "_id": -1 }).skip(keep);
        let first = first.projection(doc! { "_id": 1 });
        if let Some(first) = self.connection.run(OPERATION, first).await? {
            old.push(doc! { "_id": { "$lte": first.get("_id") } });
        }
        let question = audit.find(doc! { "$or": old }).sort(doc! { "_id": 1 }).limit(limit(most));
        let question = question.projection(doc! { "_id": 1 });
        let read = |record: Record<'_>| Ok(record.any("_id").cloned());
        let found = self.connection.all(OPERATION, question, read).await?;
        let found: Vec<Bson> = found.into_iter().flatten().collect();
        if found.is_empty() {
            return Ok(0);
        }
        // Entries never change: what was found is what is forgotten.
        let call = audit.delete_many(doc! { "_id": { "$in": found } });
        Ok(self.connection.run(OPERATION, call).await?.deleted_count)
    }
}
