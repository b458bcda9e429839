//! Takes puts, deletes and their dispatching; gives the newest versions, and what still has to be spread.

mod beside;
mod dispatch;
mod lock;
mod next;
mod prepared;
mod read;
mod remove;
mod scan;
mod within;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Document, DocumentKey, DocumentUrl, RecordName, ResourceId, Timestamp, Version,
};
use flare_core::port::{
    ClosePartition, Closed, DocumentHead, DocumentStore, DocumentWrite, OpenPartitions, Opened,
    Scan, Undispatched, WriteOutcome,
};

use super::PostgresRepository;
use crate::codec::{counted, id as uuid};

pub use prepared::PreparedPut;
pub(crate) use within::Wish;

/// What errors call a document.
pub(super) fn name_of(key: &DocumentKey) -> RecordName {
    RecordName::Document(key.clone())
}

#[async_trait]
impl DocumentStore for PostgresRepository {
    async fn write_documents(&self, writes: Vec<DocumentWrite>) -> Vec<Result<WriteOutcome>> {
        self.write_all(&writes).await
    }

    async fn documents(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.database.attempts("documents", || self.read_whole(&keys)).await
    }

    async fn document_heads(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.database.attempts("document_heads", || self.read_heads(&keys)).await
    }

    async fn open_partitions(&self, opens: Vec<OpenPartitions>) -> Vec<Result<Opened>> {
        self.open(&opens).await
    }

    async fn close_partitions(&self, closes: Vec<ClosePartition>) -> Vec<Result<Closed>> {
        self.close(&closes).await
    }

    async fn mark_dispatched(&self, versions: Vec<(DocumentKey, Version)>) -> Vec<Result<()>> {
        self.mark(&versions).await
    }

    fn undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched> {
        self.scan_undispatched(until)
    }

    async fn take_puts_beside(&self, limit: usize, wait: Duration) -> Result<Vec<Undispatched>> {
        self.take_beside(limit, wait).await
    }

    async fn count_undispatched(&self, resource: Option<ResourceId>) -> Result<u64> {
        const OPERATION: &str = "count_undispatched";
        const SQL: &str = "SELECT count(*) FROM flare.undispatched l CROSS JOIN unnest(l.documents) k(n) \
             JOIN flare.documents d ON d.n = k.n AND d.listed = l.n WHERE d.undispatched AND ($1::uuid IS NULL \
             OR d.resource = (SELECT n FROM flare.resource_ids WHERE id = $1))";
        let resource = resource.map(|resource| uuid(resource.as_bytes()));
        self.database
            .attempts(OPERATION, || async {
                counted(self.database.one(OPERATION, SQL, &[&resource]).await?.as_ref())
            })
            .await
    }

    fn scan_documents(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead> {
        self.scan_live(resource, after)
    }

    async fn count_documents(&self, resource: ResourceId) -> Result<u64> {
        const OPERATION: &str = "count_documents";
        const SQL: &str = "SELECT count(*) FROM flare.documents d JOIN flare.resource_ids i \
             ON i.n = d.resource WHERE i.id = $1 AND d.gone = 0";
        self.database
            .attempts(OPERATION, || async {
                let resource = uuid(resource.as_bytes());
                counted(self.database.one(OPERATION, SQL, &[&resource]).await?.as_ref())
            })
            .await
    }

    fn tombstones(&self, after: Option<Timestamp>, until: Timestamp) -> Scan<'_, DocumentHead> {
        self.scan_tombstones(after, until)
    }

    async fn remove_document(&self, key: &DocumentKey, version: Version) -> Result<bool> {
        self.remove_one(key, version).await
    }

    async fn remove_documents(&self, resource: ResourceId, limit: usize) -> Result<u64> {
        self.remove_some(resource, limit).await
    }
}
