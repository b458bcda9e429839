//! Takes puts, deletes and their dispatching; gives the newest versions, and what still has to be
//! spread.
//!
//! A record: `{_id: {resource, url}, version, content?, updatedAt, dispatched?, open?, trace?,
//! movedFrom?: {resource, version}, mark?, needs?}`, and derived from these in the same write: `undispatched`
//! and `tombstone`, true or not there.
//!
//! A node of before `movedFrom` passes over it when it reads and drops it when it writes. So a move
//! that a crash cut in two is finished by the next node that knows the field and meets the document
//! in a put, a delete or the reconciler's round, and at the latest by the next put or delete.

mod batch;
mod detect;
mod dispatch;

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::Result;
use flare_core::model::{
    Content, Document, DocumentKey, DocumentUrl, MovedFrom, PartitionId, RecordKind, ResourceId,
    Timestamp, Version,
};
use flare_core::port::{
    ClosePartition, Closed, DocumentHead, DocumentStore, DocumentWrite, OpenPartitions, Opened,
    Scan, Undispatched, WriteOutcome,
};
use mongodb::bson::{self, Bson, doc};

use super::{MongoRepository, ids_after, limit};
use crate::record::{self, Record};

const KIND: RecordKind = RecordKind::Document;

/// A document's id in the store. The order of the fields matters.
fn id(key: &DocumentKey) -> Bson {
    doc! { "resource": record::id(key.resource.as_bytes()), "url": key.url.as_str() }.into()
}

fn ids(keys: &[DocumentKey]) -> Vec<Bson> {
    keys.iter().map(id).collect()
}

fn read_key(record: Record<'_>) -> Result<DocumentKey> {
    let id = record.inner("_id")?;
    let url = DocumentUrl::parse(id.text("url")?).map_err(|_| record.corrupt("_id"))?;
    Ok(DocumentKey::new(ResourceId::from_bytes(id.id("resource")?), url))
}

pub(super) fn read_head(record: Record<'_>) -> Result<DocumentHead> {
    Ok(DocumentHead::new(read_key(record)?, record.version("version")?, record.time("updatedAt")?))
}

fn read_open(record: Record<'_>) -> Result<Option<Vec<PartitionId>>> {
    let Some(numbers) = record.array_if_any("open")? else { return Ok(None) };
    let read = |number: &Bson| {
        let number = number.as_i64().or_else(|| number.as_i32().map(i64::from));
        number.and_then(|it| u32::try_from(it).ok()).map(PartitionId::new)
    };
    let open: Option<Vec<PartitionId>> = numbers.iter().map(read).collect();
    open.map(Some).ok_or_else(|| record.corrupt("open"))
}

pub(super) fn read_document(record: Record<'_>) -> Result<Document> {
    let mut document =
        Document::new(read_key(record)?, record.version("version")?, record.time("updatedAt")?);
    let content = record.bytes_if_any("content")?;
    document.content = content.map(|it| Content::from_stored(Bytes::copy_from_slice(it)));
    document.dispatched = record.version_if_any("dispatched")?;
    document.open = read_open(record)?;
    let trace = record.text_if_any("trace")?.map(str::parse).transpose();
    document.trace = trace.map_err(|_| record.corrupt("trace"))?;
    document.moved_from = read_moved_from(record)?;
    Ok(document)
}

fn read_moved_from(record: Record<'_>) -> Result<Option<MovedFrom>> {
    let Some(from) = record.inner_if_any("movedFrom")? else { return Ok(None) };
    let resource = ResourceId::from_bytes(from.id("resource")?);
    Ok(Some(MovedFrom::new(resource, from.version("version")?)))
}

fn write_moved_from(from: MovedFrom) -> Bson {
    let resource = record::id(from.resource.as_bytes());
    doc! { "resource": resource, "version": record::version(from.version) }.into()
}

/// Everything but the content.
fn head() -> bson::Document {
    doc! { "content": 0 }
}

impl MongoRepository {
    async fn read_documents(
        &self,
        operation: &'static str,
        keys: Vec<DocumentKey>,
        fields: bson::Document,
    ) -> Result<Vec<Option<Document>>> {
        let found = self.stored.documents.find(doc! { "_id": { "$in": ids(&keys) } });
        let found = found.projection(fields);
        let found = self.connection.each(operation, KIND, found, read_document).await?;
        let found: Vec<Document> = found.into_iter().collect::<Result<_>>()?;
        let found: HashMap<&DocumentKey, &Document> =
            found.iter().map(|document| (&document.key, document)).collect();
        Ok(keys.iter().map(|key| found.get(key).map(|it| (*it).clone())).collect())
    }
}

#[async_trait]
impl DocumentStore for MongoRepository {
    async fn write_documents(&self, writes: Vec<DocumentWrite>) -> Vec<Result<WriteOutcome>> {
        self.detect(writes).await
    }

    async fn documents(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.read_documents("documents", keys, doc! {}).await
    }

    async fn document_heads(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.read_documents("document_heads", keys, head()).await
    }

    async fn open_partitions(&self, opens: Vec<OpenPartitions>) -> Vec<Result<Opened>> {
        self.open(opens).await
    }

    async fn close_partitions(&self, closes: Vec<ClosePartition>) -> Vec<Result<Closed>> {
        self.close(closes).await
    }

    async fn mark_dispatched(&self, versions: Vec<(DocumentKey, Version)>) -> Vec<Result<()>> {
        self.mark(versions).await
    }

    fn undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched> {
        let waiting = doc! { "undispatched": true, "updatedAt": { "$lte": record::time(until) } };
        let found = &self.stored.documents;
        let question = async move { found.find(waiting).projection(head()).await };
        self.connection.scan("undispatched", KIND, question, |record| {
            read_document(record).map(|document| Undispatched::of(&document))
        })
    }

    /// Nobody else puts documents here.
    async fn take_puts_beside(&self, _: usize, _: Duration) -> Result<Vec<Undispatched>> {
        Ok(Vec::new())
    }

    async fn count_undispatched(&self, resource: Option<ResourceId>) -> Result<u64> {
        let mut waiting = doc! { "undispatched": true };
        if let Some(resource) = resource {
            waiting.insert("_id.resource", record::id(resource.as_bytes()));
        }
        // With a filter the count is exact; without one it would be an estimate.
        let count = self.stored.documents.count_documents(waiting);
        self.connection.run("count_undispatched", count).await
    }

    fn scan_documents(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead> {
        let after = after.map(|url| Bson::from(url.as_str()));
        let range = ids_after("resource", record::id(resource.as_bytes()), "url", after);
        let found = &self.stored.documents;
        let question = async move {
            let live = doc! { "_id": range, "version.gone": false };
            found.find(live).sort(doc! { "_id": 1 }).projection(head()).await
        };
        self.connection.scan("scan_documents", KIND, question, read_head)
    }

    async fn count_documents(&self, resource: ResourceId) -> Result<u64> {
        const OPERATION: &str = "count_documents";
        // Of all and of those that are gone, each by an index: no document is read.
        let found = &self.stored.documents;
        let range = ids_after("resource", record::id(resource.as_bytes()), "url", None);
        let all =
            self.connection.run(OPERATION, found.count_documents(doc! { "_id": range })).await?;
        let gone = doc! {
            "version.gone": true,
            "_id.resource": record::id(resource.as_bytes()),
        };
        let gone = self.connection.run(OPERATION, found.count_documents(gone)).await?;
        Ok(all.saturating_sub(gone))
    }

    fn tombstones(&self, after: Option<Timestamp>, until: Timestamp) -> Scan<'_, DocumentHead> {
        let mut times = doc! { "$lte": record::time(until) };
        if let Some(after) = after {
            times.insert("$gt", record::time(after));
        }
        let old = doc! { "tombstone": true, "updatedAt": times };
        let found = &self.stored.documents;
        let question =
            async move { found.find(old).sort(doc! { "updatedAt": 1 }).projection(head()).await };
        self.connection.scan("tombstones", KIND, question, read_head)
    }

    async fn remove_document(&self, key: &DocumentKey, version: Version) -> Result<bool> {
        let this = doc! {
            "_id": id(key),
            "version": record::version(version),
            "undispatched": { "$exists": false },
        };
        let removed = self.stored.documents.delete_one(this);
        let removed = self.connection.run("remove_document", removed).await?;
        Ok(removed.deleted_count == 1)
    }

    async fn remove_documents(&self, resource: ResourceId, most: usize) -> Result<u64> {
        const OPERATION: &str = "remove_documents";
        let range = ids_after("resource", record::id(resource.as_bytes()), "url", None);
        let documents = &self.stored.documents;
        let some = documents.find(doc! { "_id": range }).projection(doc! { "_id": 1 });
        // As they are: one that cannot be read goes like any other.
        let raw = |record: Record<'_>| Ok(record.any("_id").cloned());
        let keys = self.connection.all(OPERATION, some.limit(limit(most)), raw).await?;
        let keys: Vec<Bson> = keys.into_iter().flatten().collect();
        if keys.is_empty() {
            return Ok(0);
        }
        let removed = documents.delete_many(doc! { "_id": { "$in": keys } });
        let removed = self.connection.run(OPERATION, removed).await?.deleted_count;
        // Zero would mean that none is left; somebody else may have removed them all.
        Ok(removed.max(1))
    }
}
