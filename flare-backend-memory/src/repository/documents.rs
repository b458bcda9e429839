//! Takes puts, deletes and their dispatching; gives each to the shard of its URL.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::{
    Document, DocumentKey, DocumentUrl, RecordName, ResourceId, Timestamp, Unreadable, Version,
    WhyUnreadable,
};
use flare_core::port::{
    ClosePartition, Closed, DocumentHead, DocumentStore, DocumentWrite, OpenPartitions, Opened,
    Operation, Scan, Undispatched, WriteOutcome,
};
use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream;

use super::MemoryRepository;
use super::shard::Shard;
use super::spoilt::unreadable;
use crate::{BACKEND, lock};

/// Enough for writers not to meet, and for one shard's keys to be sorted in no time.
const SHARDS: usize = 1024;

#[derive(Debug)]
pub(super) struct Documents {
    shards: Box<[Mutex<Shard>]>,
}

impl Documents {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    pub(super) fn shard(&self, url: &DocumentUrl) -> &Mutex<Shard> {
        &self.shards[Self::shard_number(url)]
    }

    fn shard_number(url: &DocumentUrl) -> usize {
        (usize::from(url.bucket().number()) * SHARDS) >> 16
    }

    /// The key as it is stored, or the one given.
    pub(super) fn interned(&self, key: &DocumentKey) -> DocumentKey {
        lock(self.shard(&key.url)).stored_key(key).unwrap_or_else(|| key.clone())
    }

    /// Reads the shards from the one numbered `first` on, one at a time.
    fn scan<'a, T: Send + 'a>(
        &'a self,
        first: usize,
        read: impl Fn(&Shard) -> Vec<T> + Send + 'a,
    ) -> Scan<'a, T> {
        let shards = self.shards.iter().skip(first);
        stream::iter(shards.flat_map(move |shard| read(&lock(shard))).map(Ok)).boxed()
    }
}

#[async_trait]
impl DocumentStore for MemoryRepository {
    async fn write_documents(&self, writes: Vec<DocumentWrite>) -> Vec<Result<WriteOutcome>> {
        let now = self.time.now();
        let write = |write: DocumentWrite| {
            self.check_content(&write)?;
            let name = || RecordName::Document(write.key.clone());
            let key = match self.spoilt.why(name) {
                Some(why @ WhyUnreadable::Newer { .. }) => {
                    return Err(unreadable("write_documents", Unreadable::new(name(), why)));
                }
                why => why.map(|_| write.key.clone()),
            };
            let mut shard = lock(self.documents.shard(&write.key.url));
            let written = shard.write(write, now, &self.budget)?;
            if let Some(key) = key.filter(|_| written.change.notifies()) {
                // Written as a whole: whatever was damaged is not any more.
                self.spoilt.forget(|| RecordName::Document(key));
            }
            Ok(written)
        };
        writes.into_iter().map(write).collect()
    }

    async fn documents(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.read_documents("documents", &keys, Shard::get)
    }

    async fn document_heads(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>> {
        self.read_documents("document_heads", &keys, Shard::head)
    }

    async fn open_partitions(&self, opens: Vec<OpenPartitions>) -> Vec<Result<Opened>> {
        let open = |OpenPartitions { key, version, partitions }| {
            let mut shard = lock(self.documents.shard(&key.url));
            let opened =
                shard.at_version(&key, version, |dispatch| match dispatch.is_dispatched() {
                    true => Opened::Dispatched,
                    false => Opened::Open(dispatch.open(partitions)),
                });
            Ok(opened.unwrap_or(Opened::Superseded))
        };
        opens.into_iter().map(open).collect()
    }

    async fn close_partitions(&self, closes: Vec<ClosePartition>) -> Vec<Result<Closed>> {
        let close = |ClosePartition { key, version, partition }| {
            let mut shard = lock(self.documents.shard(&key.url));
            let closed = shard.at_version(&key, version, |dispatch| {
                dispatch.close(partition);
                if dispatch.is_dispatched() { Closed::Dispatched } else { Closed::Open }
            });
            Ok(closed.unwrap_or(Closed::Superseded))
        };
        closes.into_iter().map(close).collect()
    }

    async fn mark_dispatched(&self, versions: Vec<(DocumentKey, Version)>) -> Vec<Result<()>> {
        let mark = |(key, version): (DocumentKey, Version)| {
            lock(self.documents.shard(&key.url)).mark_dispatched(&key, version);
            Ok(())
        };
        versions.into_iter().map(mark).collect()
    }

    fn undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched> {
        let scan = self.documents.scan(0, move |shard| {
            let stored = shard.undispatched().filter(|document| document.updated_at <= until);
            stored.map(|document| Undispatched::of(&document)).collect()
        });
        self.readable("undispatched", scan, |it| &it.key)
    }

    /// Nobody else has the memory of this process.
    async fn take_puts_beside(&self, _: usize, _: Duration) -> Result<Vec<Undispatched>> {
        Ok(Vec::new())
    }

    async fn count_undispatched(&self, resource: Option<ResourceId>) -> Result<u64> {
        let shards = self.documents.shards.iter();
        Ok(shards.map(|shard| lock(shard).count_undispatched(resource) as u64).sum())
    }

    fn scan_documents(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead> {
        // The order of the store: by shard, which follows from the URL, then by URL.
        let first = after.as_ref().map_or(0, Documents::shard_number);
        let scan = self.documents.scan(first, move |shard| {
            let mut heads: Vec<DocumentHead> = shard
                .live(resource)
                .filter(|(key, ..)| match &after {
                    Some(after) => (Documents::shard_number(&key.url), &key.url) > (first, after),
                    None => true,
                })
                .map(|(key, version, updated_at)| {
                    DocumentHead::new(key.clone(), version, updated_at)
                })
                .collect();
            heads.sort_unstable_by(|a, b| a.key.url.cmp(&b.key.url));
            heads
        });
        self.readable("scan_documents", scan, |it| &it.key)
    }

    async fn count_documents(&self, resource: ResourceId) -> Result<u64> {
        let shards = self.documents.shards.iter();
        Ok(shards.map(|shard| lock(shard).live(resource).count() as u64).sum())
    }

    fn tombstones(&self, after: Option<Timestamp>, until: Timestamp) -> Scan<'_, DocumentHead> {
        let mut found: Vec<DocumentHead> = Vec::new();
        for shard in &self.documents.shards {
            let shard = lock(shard);
            let old = shard.tombstones().filter(|(.., at)| Some(*at) > after && *at <= until);
            found.extend(old.map(|(key, version, at)| DocumentHead::new(key.clone(), version, at)));
        }
        found.sort_by_key(|head| head.updated_at);
        let scan = stream::iter(found.into_iter().map(Ok)).boxed();
        self.readable("tombstones", scan, |it| &it.key)
    }

    async fn remove_document(&self, key: &DocumentKey, version: Version) -> Result<bool> {
        Ok(lock(self.documents.shard(&key.url)).remove_at(key, version, &self.budget))
    }

    async fn remove_documents(&self, resource: ResourceId, limit: usize) -> Result<u64> {
        let mut left = limit;
        for shard in &self.documents.shards {
            left -= lock(shard).remove_of(resource, left, &self.budget);
            if left == 0 {
                break;
            }
        }
        Ok((limit - left) as u64)
    }
}

impl MemoryRepository {
    pub(super) fn read_documents(
        &self,
        operation: &'static str,
        keys: &[DocumentKey],
        get: fn(&Shard, &DocumentKey) -> Option<Document>,
    ) -> Result<Vec<Option<Document>>> {
        let read = |key: &DocumentKey| {
            let found = get(&lock(self.documents.shard(&key.url)), key);
            let name = |document: &Document| RecordName::Document(document.key.clone());
            found.map(|found| self.spoilt.read(operation, name, found)).transpose()
        };
        keys.iter().map(read).collect()
    }

    /// A scan in which every document that cannot be read is an error.
    fn readable<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        scan: Scan<'a, T>,
        key: fn(&T) -> &DocumentKey,
    ) -> Scan<'a, T> {
        let name = move |item: &T| RecordName::Document(key(item).clone());
        scan.map(move |item| self.spoilt.read(operation, name, item?)).boxed()
    }

    fn check_content(&self, write: &DocumentWrite) -> Result<()> {
        let Operation::Put { content, .. } = &write.operation else {
            return Ok(());
        };
        let bytes = content.as_bytes().len();
        if bytes > self.max_content {
            let detail = format!("{bytes} bytes, at most {} fit (max-content)", self.max_content);
            return Err(Error::new(ErrorKind::TooLarge, "write_documents")
                .with_backend(BACKEND)
                .with_field("document")
                .with_detail(detail));
        }
        Ok(())
    }
}
