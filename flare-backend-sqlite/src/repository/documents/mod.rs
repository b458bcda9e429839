//! Takes puts, deletes and their dispatching; gives the newest versions, and what still has to be spread.

mod dispatch;
mod find;
mod scan;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::Result;
use flare_core::model::{
    Content, Document, DocumentKey, DocumentUrl, ResourceId, Timestamp, Version,
};
use flare_core::port::{
    ClosePartition, Closed, DocumentHead, DocumentStore, DocumentWrite, OpenPartitions, Opened,
    Operation, Scan, Undispatched, WriteOutcome,
};
use rusqlite::OptionalExtension;

use super::SqliteRepository;
use crate::codec;
use crate::engine::{Effort, names};
pub(super) use dispatch::mark as mark_dispatched;
use find::Finder;
pub(super) use find::{NumberFinder, name_of};
pub(super) use scan::{ScanPage, pages};

/// The answer to each item of a batch that failed as a whole, or came through.
pub(super) fn answers<T: Clone>(done: Result<Vec<Result<T>>>, items: usize) -> Vec<Result<T>> {
    done.unwrap_or_else(|error| vec![Err(error); items])
}

#[async_trait]
impl DocumentStore for SqliteRepository {
    async fn write_documents(&self, writes: Vec<DocumentWrite>) -> Vec<Result<WriteOutcome>> {
        let bytes = |write: &DocumentWrite| match &write.operation {
            Operation::Put { content, .. } => content.as_bytes().len(),
            _ => 0,
        };
        let (items, bytes) = (writes.len(), writes.iter().map(bytes).sum());
        let most = self.max_content;
        let effort = Effort::durable("write_documents").of(items).bytes(bytes);
        let done = self.engine.write(effort, move |tx| write::write(tx, &writes, most)).await;
        answers(done, items)
    }

    async fn documents(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.read_documents("documents", keys, true).await
    }

    async fn document_heads(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.read_documents("document_heads", keys, false).await
    }

    async fn open_partitions(&self, opens: Vec<OpenPartitions>) -> Vec<Result<Opened>> {
        let items = opens.len();
        let effort = Effort::durable("open_partitions").of(items);
        let done = self.engine.write(effort, move |tx| dispatch::open(tx, &opens)).await;
        answers(done, items)
    }

    async fn close_partitions(&self, closes: Vec<ClosePartition>) -> Vec<Result<Closed>> {
        let items = closes.len();
        let effort = Effort::durable("close_partitions").of(items);
        let done = self.engine.write(effort, move |tx| dispatch::close(tx, &closes)).await;
        answers(done, items)
    }

    async fn mark_dispatched(&self, versions: Vec<(DocumentKey, Version)>) -> Vec<Result<()>> {
        let items = versions.len();
        let effort = Effort::repeated("mark_dispatched").of(items);
        let done = self.engine.write(effort, move |tx| dispatch::mark(tx, &versions)).await;
        answers(done, items)
    }

    fn undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched> {
        self.scan_undispatched(until)
    }

    /// Nobody else puts documents here.
    async fn take_puts_beside(&self, _: usize, _: Duration) -> Result<Vec<Undispatched>> {
        Ok(Vec::new())
    }

    async fn count_undispatched(&self, resource: Option<ResourceId>) -> Result<u64> {
        let count = move |reader: &crate::engine::Reader<'_>| {
            let Some(id) = resource else {
                let mut all =
                    reader.sql("SELECT count(*) FROM documents WHERE undispatched = 1")?;
                return Ok(all.query_row([], codec::counted)?);
            };
            let Some(n) = names::resource(reader.connection, id)? else { return Ok(0) };
            let mut its = reader
                .sql("SELECT count(*) FROM documents WHERE undispatched = 1 AND resource = ?1")?;
            Ok(its.query_row([n], codec::counted)?)
        };
        self.engine.read("count_undispatched", count).await
    }

    fn scan_documents(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead> {
        self.scan_live(resource, after)
    }

    async fn count_documents(&self, resource: ResourceId) -> Result<u64> {
        let count = move |reader: &crate::engine::Reader<'_>| {
            let Some(n) = names::resource(reader.connection, resource)? else { return Ok(0) };
            let mut live = reader.sql(
                "SELECT count(*) FROM documents INDEXED BY documents_hash \
                 WHERE resource = ?1 AND gone = 0",
            )?;
            Ok(live.query_row([n], codec::counted)?)
        };
        self.engine.read("count_documents", count).await
    }

    fn tombstones(&self, after: Option<Timestamp>, until: Timestamp) -> Scan<'_, DocumentHead> {
        self.scan_tombstones(after, until)
    }

    async fn remove_document(&self, key: &DocumentKey, version: Version) -> Result<bool> {
        let (key, effort) = (key.clone(), Effort::durable("remove_document"));
        self.engine.write(effort, move |tx| write::remove(tx, &key, version)).await
    }

    async fn remove_documents(&self, resource: ResourceId, limit: usize) -> Result<u64> {
        let effort = Effort::durable("remove_documents").of(limit.min(1_000));
        self.engine.write(effort, move |tx| write::remove_some(tx, resource, limit)).await
    }
}

impl SqliteRepository {
    async fn read_documents(
        &self,
        operation: &'static str,
        keys: Vec<DocumentKey>,
        whole: bool,
    ) -> Result<Vec<Option<Document>>> {
        let read = move |reader: &crate::engine::Reader<'_>| {
            let mut finder = Finder::new(reader.connection)?;
            let mut content = reader.sql("SELECT content FROM contents WHERE document = ?1")?;
            let mut documents = Vec::with_capacity(keys.len());
            for key in &keys {
                let met = |error| codec::met_at(operation, name_of(key), error);
                let Some(stored) = finder.find(key).map_err(met)? else {
                    documents.push(None);
                    continue;
                };
                let head = stored.head().transpose();
                let head =
                    head.map_err(|why| codec::unreadable_record(operation, name_of(key), why))?;
                let mut document = head.map(|head| head.document(key.clone()));
                if let Some(document) = document.as_mut().filter(|_| whole) {
                    let bytes: Option<Vec<u8>> =
                        content.query_row([stored.n], |row| row.get(0)).optional().map_err(met)?;
                    document.content = bytes.map(|bytes| Content::from_stored(Bytes::from(bytes)));
                }
                documents.push(document);
            }
            Ok(documents)
        };
        self.engine.read(operation, read).await
    }
}
