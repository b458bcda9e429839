//! Takes writes to the documents of one range of URLs; gives their newest versions and keeps
//! track of what is undispatched and what is gone.

use std::collections::{BTreeSet, HashMap};

use flare_core::Result;
use flare_core::model::{
    Content, Document, DocumentKey, MovedFrom, PartitionId, ResourceId, Timestamp, TraceContext,
    Version, detect_delete, detect_leave, detect_put,
};
use flare_core::port::{DocumentWrite, Operation, WriteOutcome};

use super::budget::{Budget, DOCUMENT_BYTES};

/// The documents whose URLs fall into one range of buckets.
#[derive(Debug, Default)]
pub(super) struct Shard {
    documents: HashMap<DocumentKey, Stored>,
    // What is iterated over is ordered, so that a run can be replayed.
    /// Derived: the keys whose `dispatched` is below their version.
    undispatched: BTreeSet<DocumentKey>,
    /// Derived: the keys whose version is gone.
    gone: BTreeSet<DocumentKey>,
    /// Derived: how many documents each resource has here, to count and to skip without looking.
    counts: HashMap<ResourceId, Counts>,
}

/// How many documents a resource has.
#[derive(Debug, Default)]
struct Counts {
    all: usize,
    undispatched: usize,
}

/// A document as it is kept: what few documents have is behind a pointer.
#[derive(Debug)]
struct Stored {
    version: Version,
    content: Option<Content>,
    updated_at: Timestamp,
    dispatched: Option<Version>,
    rare: Option<Box<Rare>>,
}

#[derive(Debug, Default, PartialEq)]
struct Rare {
    open: Option<Vec<PartitionId>>,
    trace: Option<TraceContext>,
    moved_from: Option<MovedFrom>,
}

impl Stored {
    fn is_undispatched(&self) -> bool {
        self.dispatched < Some(self.version)
    }

    fn open(&self) -> Option<&Vec<PartitionId>> {
        self.rare.as_ref()?.open.as_ref()
    }

    fn set_open(&mut self, open: Option<Vec<PartitionId>>) {
        let mut rare = self.rare.take().unwrap_or_default();
        rare.open = open;
        self.keep_rare(rare);
    }

    /// What was to be done before this version is told of is done.
    fn end_move(&mut self) {
        if let Some(mut rare) = self.rare.take() {
            rare.moved_from = None;
            self.keep_rare(rare);
        }
    }

    fn keep_rare(&mut self, rare: Box<Rare>) {
        self.rare = Some(rare).filter(|rare| **rare != Rare::default());
    }

    fn content_len(&self) -> u64 {
        self.content.as_ref().map_or(0, |content| content.as_bytes().len() as u64)
    }

    fn to_document(&self, key: &DocumentKey) -> Document {
        let mut document = self.to_head(key);
        document.content = self.content.clone();
        document
    }

    fn moved_from(&self) -> Option<MovedFrom> {
        self.rare.as_ref().and_then(|rare| rare.moved_from)
    }

    fn to_head(&self, key: &DocumentKey) -> Document {
        let mut document = Document::new(key.clone(), self.version, self.updated_at);
        document.dispatched = self.dispatched;
        document.open = self.open().cloned();
        document.trace = self.rare.as_ref().and_then(|rare| rare.trace.clone());
        document.moved_from = self.moved_from();
        document
    }
}

/// What a stored document weighs.
fn weight(key: &DocumentKey, content: u64) -> u64 {
    DOCUMENT_BYTES + key.url.as_str().len() as u64 + content
}

impl Shard {
    pub(super) fn write(
        &mut self,
        write: DocumentWrite,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<WriteOutcome> {
        let DocumentWrite { key, operation, trace, moved_from, .. } = write;
        let stored = self.documents.get(&key);
        let before = stored.map(|stored| stored.version);
        let (detected, content) = match operation {
            Operation::Put { revision, content } => (detect_put(before, revision), Some(content)),
            Operation::Delete { revision } => (detect_delete(before, revision), None),
            Operation::Leave { at } => (detect_leave(before, at), None),
        };
        let Some(version) = detected.store else {
            let undispatched = stored.is_some_and(Stored::is_undispatched);
            return Ok(WriteOutcome::new(detected.change, before, undispatched));
        };

        let freed = stored.map_or(0, |stored| weight(&key, stored.content_len()));
        let content = match content {
            // A copy of its own size: what came in may be a slice of a far larger buffer.
            Some(content) => {
                Some(Content::from_stored(bytes::Bytes::copy_from_slice(content.as_bytes())))
            }
            None => stored.and_then(|stored| stored.content.clone()),
        };
        let needed = weight(&key, content.as_ref().map_or(0, |it| it.as_bytes().len() as u64));
        budget.trade("write_documents", freed, needed)?;

        let was_dispatched = stored.is_none_or(|stored| !stored.is_undispatched());
        let dispatched = if !detected.change.notifies() && was_dispatched {
            Some(version)
        } else {
            stored.and_then(|stored| stored.dispatched)
        };
        let moved_from = moved_from.or_else(|| stored.and_then(Stored::moved_from));
        let mut next = Stored { version, content, updated_at: now, dispatched, rare: None };
        let undispatched = next.is_undispatched();
        let rare = Rare { open: None, trace, moved_from: moved_from.filter(|_| undispatched) };
        next.rare = (rare != Rare::default()).then(|| Box::new(rare));
        self.put(key, next);
        Ok(WriteOutcome::new(detected.change, Some(version), undispatched))
    }

    fn put(&mut self, key: DocumentKey, next: Stored) {
        self.set_undispatched(&key, next.is_undispatched());
        set_member(&mut self.gone, &key, next.version.is_gone());
        let resource = key.resource;
        match self.documents.get_mut(&key) {
            // In place: the key that is stored is shared with the rows.
            Some(stored) => *stored = next,
            None => {
                self.documents.insert(key, next);
                self.counts.entry(resource).or_default().all += 1;
            }
        }
    }

    fn remove(&mut self, key: &DocumentKey, budget: &Budget) {
        let Some(stored) = self.documents.remove(key) else {
            return;
        };
        budget.free(weight(key, stored.content_len()));
        self.set_undispatched(key, false);
        self.gone.remove(key);
        if let Some(counts) = self.counts.get_mut(&key.resource) {
            counts.all -= 1;
            if counts.all == 0 {
                self.counts.remove(&key.resource);
            }
        }
    }

    fn set_undispatched(&mut self, key: &DocumentKey, undispatched: bool) {
        if set_member(&mut self.undispatched, key, undispatched) {
            let counts = self.counts.entry(key.resource).or_default();
            if undispatched {
                counts.undispatched += 1;
            } else {
                counts.undispatched -= 1;
            }
        }
    }

    pub(super) fn get(&self, key: &DocumentKey) -> Option<Document> {
        self.documents.get(key).map(|stored| stored.to_document(key))
    }

    pub(super) fn head(&self, key: &DocumentKey) -> Option<Document> {
        self.documents.get(key).map(|stored| stored.to_head(key))
    }

    /// The key as it is stored, so that rows share its allocation.
    pub(super) fn stored_key(&self, key: &DocumentKey) -> Option<DocumentKey> {
        self.documents.get_key_value(key).map(|(stored, _)| stored.clone())
    }

    /// What `change` makes of a document that is at `version`; `None` if it has moved on.
    pub(super) fn at_version<R>(
        &mut self,
        key: &DocumentKey,
        version: Version,
        change: impl FnOnce(&mut Dispatch<'_>) -> R,
    ) -> Option<R> {
        let stored = self.documents.get_mut(key).filter(|stored| stored.version == version)?;
        let answer = change(&mut Dispatch(stored));
        let undispatched = stored.is_undispatched();
        self.set_undispatched(key, undispatched);
        Some(answer)
    }

    pub(super) fn mark_dispatched(&mut self, key: &DocumentKey, version: Version) {
        if let Some(stored) = self.documents.get_mut(key) {
            stored.dispatched = stored.dispatched.max(Some(version.min(stored.version)));
            if !stored.is_undispatched() {
                stored.set_open(None);
                stored.end_move();
            }
            let undispatched = stored.is_undispatched();
            self.set_undispatched(key, undispatched);
        }
    }

    pub(super) fn undispatched(&self) -> impl Iterator<Item = Document> + '_ {
        self.undispatched.iter().filter_map(|key| self.get(key))
    }

    pub(super) fn count_undispatched(&self, resource: Option<ResourceId>) -> usize {
        match resource {
            None => self.undispatched.len(),
            Some(resource) => self.counts.get(&resource).map_or(0, |counts| counts.undispatched),
        }
    }

    pub(super) fn tombstones(
        &self,
    ) -> impl Iterator<Item = (&DocumentKey, Version, Timestamp)> + '_ {
        let stored = self.gone.iter().filter_map(|key| Some((key, self.documents.get(key)?)));
        stored
            .filter(|(_, stored)| !stored.is_undispatched())
            .map(|(key, stored)| (key, stored.version, stored.updated_at))
    }

    pub(super) fn live(
        &self,
        resource: ResourceId,
    ) -> impl Iterator<Item = (&DocumentKey, Version, Timestamp)> + '_ {
        // Most shards have none of a small resource's documents: those cost one look.
        let documents = self.counts.contains_key(&resource).then_some(&self.documents);
        documents
            .into_iter()
            .flatten()
            .filter(move |(key, stored)| key.resource == resource && !stored.version.is_gone())
            .map(|(key, stored)| (key, stored.version, stored.updated_at))
    }

    pub(super) fn remove_at(
        &mut self,
        key: &DocumentKey,
        version: Version,
        budget: &Budget,
    ) -> bool {
        let removable = |stored: &Stored| stored.version == version && !stored.is_undispatched();
        let remove = self.documents.get(key).is_some_and(removable);
        if remove {
            self.remove(key, budget);
        }
        remove
    }

    pub(super) fn remove_of(
        &mut self,
        resource: ResourceId,
        limit: usize,
        budget: &Budget,
    ) -> usize {
        if !self.counts.contains_key(&resource) {
            return 0;
        }
        let of_resource = self.documents.keys().filter(|key| key.resource == resource);
        let keys: Vec<DocumentKey> = of_resource.take(limit).cloned().collect();
        for key in &keys {
            self.remove(key, budget);
        }
        keys.len()
    }
}

/// How far a document has been spread.
pub(super) struct Dispatch<'a>(&'a mut Stored);

impl Dispatch<'_> {
    pub(super) fn is_dispatched(&self) -> bool {
        !self.0.is_undispatched()
    }

    /// Stores the open set unless there is one, and gives the one that is stored.
    pub(super) fn open(&mut self, partitions: Vec<PartitionId>) -> Vec<PartitionId> {
        if let Some(open) = self.0.open() {
            return open.clone();
        }
        self.0.set_open(Some(partitions.clone()));
        partitions
    }

    /// Takes a partition out of the open set; the last one dispatches the version.
    pub(super) fn close(&mut self, partition: PartitionId) {
        let Some(open) = self.0.open() else {
            return;
        };
        let left: Vec<PartitionId> = open.iter().copied().filter(|it| *it != partition).collect();
        if left.is_empty() {
            self.0.dispatched = self.0.dispatched.max(Some(self.0.version));
            self.0.set_open(None);
            self.0.end_move();
        } else {
            self.0.set_open(Some(left));
        }
    }
}

/// Puts a key into a set or takes it out; tells whether that changed anything.
fn set_member(set: &mut BTreeSet<DocumentKey>, key: &DocumentKey, member: bool) -> bool {
    if !member { set.remove(key) } else { !set.contains(key) && set.insert(key.clone()) }
}
