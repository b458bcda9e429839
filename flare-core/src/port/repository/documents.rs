//! Takes new versions of documents; gives the newest one back, and which of them still have to
//! be spread.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::{
    Content, Document, DocumentChange, DocumentKey, DocumentUrl, MovedFrom, PartitionId,
    ResourceId, Revision, Timestamp, TraceContext, Version,
};
use crate::port::Scan;

/// Keeps the newest version of each document, and how far it has been spread.
///
/// # Contract
/// - **RD1** A put, delete or leave is one atomic conditional write by the rules of
///   [`detect_put`](crate::model::detect_put), [`detect_delete`](crate::model::detect_delete) and
///   [`detect_leave`](crate::model::detect_leave): of any number of concurrent writes of one revision exactly one is a change, and the stored
///   version never goes down.
/// - **RD2** Content is stored byte for byte; an equal or older revision never replaces it, and a
///   delete keeps the last known one.
/// - **RD3** `dispatched` is a version. A change that notifies leaves it as it was, so that the
///   document is undispatched; a tombstone no client is told of (never seen, or raised) keeps a
///   dispatched document dispatched. Any stored change forgets the open set.
/// - **RD4** Writes of one key in one batch take effect in their order.
/// - **RD5** `open_partitions` stores the open set only while the document is at that version and
///   undispatched; if it has one already that one stays. The answer is the set that is stored.
/// - **RD6** `close_partitions` removes a partition from the open set only while the document is
///   at that version; the removal that empties it dispatches that version in the same write.
///   Removing it again changes nothing.
/// - **RD7** `mark_dispatched` raises `dispatched` to the version named or the stored one,
///   whichever is lower; never down. A document that is not there stays so.
/// - **RD8** `undispatched` gives every document that is undispatched and was stored at or before
///   the time named, in no particular order; the count counts them all.
/// - **RD9** `remove_document` removes only the very version named, and only once dispatched.
/// - **RD10** `scan_documents` gives every live document of the resource in an order of the
///   store's own that never changes, so that a scan after any URL it gave goes on where that one
///   stood; `tombstones` gives every gone and dispatched one stored after the one time named and at
///   or before the other, earliest first.
/// - **RD11** `remove_documents` removes up to `limit` documents of a resource, whatever their
///   state, and says how many; zero means that none is left.
/// - **RD12** A store that is full refuses with [`ErrorKind::Busy`](crate::ErrorKind::Busy), a
///   document it can never hold with [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge); nothing
///   of that item is stored.
/// - **RD13** The trace a version came with is kept with that version.
/// - **RD14** `document_heads` gives what `documents` gives, without content.
/// - **RD15** A change that notes where the document moved from stores the note in the same write,
///   in place of an older one; a change that notes nothing keeps it, and so does what stores
///   nothing. The write that dispatches the stored version forgets it.
/// - **RD16** `count_documents` counts the live documents of a resource: exactly, while none is written.
/// - **RD17** `take_puts_beside` gives undispatched documents that were put beside Flare and that no task tells
///   of, each change once, in no particular order; those that cannot be read it leaves out. It waits for one,
///   at most as long as it is told to. What `write_documents` stored is never among them: its
///   caller announces that.
#[async_trait]
pub trait DocumentStore: fmt::Debug + Send + Sync + 'static {
    /// Puts and deletes documents; one outcome per write.
    async fn write_documents(&self, writes: Vec<DocumentWrite>) -> Vec<Result<WriteOutcome>>;

    /// Reads documents; one answer per key, deleted ones included.
    async fn documents(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>>;

    /// Reads documents without their content; one answer per key, deleted ones included.
    async fn document_heads(&self, keys: Vec<DocumentKey>) -> Result<Vec<Option<Document>>>;

    /// Notes which partitions have to spread a version; one answer per item.
    async fn open_partitions(&self, opens: Vec<OpenPartitions>) -> Vec<Result<Opened>>;

    /// Notes that partitions have been spread; one answer per item.
    async fn close_partitions(&self, closes: Vec<ClosePartition>) -> Vec<Result<Closed>>;

    /// Notes that versions have been spread to all partitions; one answer per item.
    async fn mark_dispatched(&self, versions: Vec<(DocumentKey, Version)>) -> Vec<Result<()>>;

    /// Finds what still has to be spread and was stored at or before `until`.
    fn undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched>;

    /// Takes some of what was put beside Flare, by transactions of a host's own, and is to be announced; waits for
    /// that. What was taken and never announced the reconciler finds.
    async fn take_puts_beside(&self, limit: usize, wait: Duration) -> Result<Vec<Undispatched>>;

    /// Counts what still has to be spread, of one resource or of all.
    async fn count_undispatched(&self, resource: Option<ResourceId>) -> Result<u64>;

    /// Reads the live documents of a resource, without content.
    fn scan_documents(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead>;

    /// Counts the live documents of a resource.
    async fn count_documents(&self, resource: ResourceId) -> Result<u64>;

    /// Finds dispatched tombstones that were stored after `after`, or ever, and at or before `until`.
    fn tombstones(&self, after: Option<Timestamp>, until: Timestamp) -> Scan<'_, DocumentHead>;

    /// Removes a document that is still at this version; tells whether it did.
    async fn remove_document(&self, key: &DocumentKey, version: Version) -> Result<bool>;

    /// Removes some of a resource's documents; tells how many.
    async fn remove_documents(&self, resource: ResourceId, limit: usize) -> Result<u64>;
}

/// One put or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentWrite {
    /// Of which document.
    pub key: DocumentKey,
    /// What to do with it.
    pub operation: Operation,
    /// The trace it belongs to.
    pub trace: Option<TraceContext>,
    /// Where the document was live before, if this write moves it.
    pub moved_from: Option<MovedFrom>,
}

impl DocumentWrite {
    /// A put of `content` as `revision`.
    pub fn put(key: DocumentKey, revision: Revision, content: Content) -> Self {
        Self::new(key, Operation::Put { revision, content })
    }

    /// A delete, which may name the revision it deletes.
    pub fn delete(key: DocumentKey, revision: Option<Revision>) -> Self {
        Self::new(key, Operation::Delete { revision })
    }

    /// The end of a document's time in a resource: it moved away while it was at this version.
    pub fn leave(key: DocumentKey, at: Version) -> Self {
        Self::new(key, Operation::Leave { at })
    }

    const fn new(key: DocumentKey, operation: Operation) -> Self {
        Self { key, operation, trace: None, moved_from: None }
    }

    /// The same write within a trace.
    #[must_use]
    pub fn trace(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace;
        self
    }

    /// The same write, noting where the document moved from.
    #[must_use]
    pub fn moved_from(mut self, from: Option<MovedFrom>) -> Self {
        self.moved_from = from;
        self
    }
}

/// What to do with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Store this content as this revision.
    Put {
        /// Which revision.
        revision: Revision,
        /// Its content.
        content: Content,
    },
    /// Make it gone, as of the stored revision or the one named, whichever is higher.
    Delete {
        /// The revision named.
        revision: Option<Revision>,
    },
    /// Make it gone, if it is live at this very version.
    Leave {
        /// Which version.
        at: Version,
    },
}

/// What became of a put or delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOutcome {
    /// Whether it was a change.
    pub change: DocumentChange,
    /// The stored version afterwards; `None` if there is no such document.
    pub version: Option<Version>,
    /// Whether the stored version still has to be spread.
    pub undispatched: bool,
}

impl WriteOutcome {
    /// An outcome as a backend hands it out.
    pub const fn new(change: DocumentChange, version: Option<Version>, undispatched: bool) -> Self {
        Self { change, version, undispatched }
    }
}

/// The partitions that have to spread a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPartitions {
    /// Which document.
    pub key: DocumentKey,
    /// Which version of it.
    pub version: Version,
    /// Who has to spread it; not empty.
    pub partitions: Vec<PartitionId>,
}

/// What became of an open set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// These partitions still have to spread the version.
    Open(Vec<PartitionId>),
    /// The version has been spread already.
    Dispatched,
    /// The document has moved on to another version, or is gone from the store.
    Superseded,
}

/// A partition that has spread a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosePartition {
    /// Which document.
    pub key: DocumentKey,
    /// Which version of it.
    pub version: Version,
    /// Who has spread it.
    pub partition: PartitionId,
}

/// What became of a removal from the open set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Other partitions still have to spread it, or it was never opened.
    Open,
    /// All partitions have spread it.
    Dispatched,
    /// The document has moved on to another version, or is gone from the store.
    Superseded,
}

/// A document that still has to be spread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undispatched {
    /// Which document.
    pub key: DocumentKey,
    /// The version to spread.
    pub version: Version,
    /// When it was stored.
    pub updated_at: Timestamp,
    /// Who still has to spread it, if that is known.
    pub open: Option<Vec<PartitionId>>,
    /// Where it has to be gone first.
    pub moved_from: Option<MovedFrom>,
}

impl Undispatched {
    /// What `document` still owes.
    pub fn of(document: &Document) -> Self {
        Self {
            key: document.key.clone(),
            version: document.version,
            updated_at: document.updated_at,
            open: document.open.clone(),
            moved_from: document.moved_from,
        }
    }
}

/// A document without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentHead {
    /// Which document.
    pub key: DocumentKey,
    /// Its newest version.
    pub version: Version,
    /// When that was stored.
    pub updated_at: Timestamp,
}

impl DocumentHead {
    /// A head as a backend hands it out.
    pub const fn new(key: DocumentKey, version: Version, updated_at: Timestamp) -> Self {
        Self { key, version, updated_at }
    }
}
