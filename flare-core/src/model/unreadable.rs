//! What a stored record is called, and why a version of Flare cannot read it.
//!
//! During a rolling upgrade a newer version may write what an older one does not know. Fields that an
//! older one may leave aside it leaves aside, and keeps. Where that would be wrong (a filter that is
//! left aside lets everything through) the newer one says so in the record: `needs` is the format a
//! worker must know. A record without it is of format 1.
//!
//! | format | brings |
//! |---|---|
//! | 2 | subscriptions whose clients are told nothing by themselves (`mode: passive`) |
//! | 3 | subscriptions with a filter |
//! | 4 | subscriptions that are told of many documents in one request (`delivery.batch`) |

use std::fmt;

use super::{
    AuditEntryId, ConsumerId, DocumentKey, JobId, LaneId, RejectId, ResourceId, RowKey,
    SubscriptionId,
};

/// The format of records that this version knows: it reads all up to it.
pub const RECORD_FORMAT: u32 = 4;

/// What kind of thing a stored record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// A kind of document.
    Resource,
    /// A client's wish.
    Subscription,
    /// The newest version of a document.
    Document,
    /// What one client has of one document.
    Row,
    /// What a lane's owner remembers.
    Lane,
    /// Long work to go on with.
    Job,
    /// An input that documents are pulled from.
    Consumer,
    /// A message that became no document.
    Reject,
    /// Something that was done, in the log of it.
    Audit,
    /// A message between stages.
    Task,
}

impl RecordKind {
    /// Every kind there is.
    pub const ALL: [Self; 10] = [
        Self::Resource,
        Self::Subscription,
        Self::Document,
        Self::Row,
        Self::Lane,
        Self::Job,
        Self::Consumer,
        Self::Reject,
        Self::Audit,
        Self::Task,
    ];

    /// The kind as status, log and metrics have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Subscription => "subscription",
            Self::Document => "document",
            Self::Row => "row",
            Self::Lane => "lane",
            Self::Job => "job",
            Self::Consumer => "consumer",
            Self::Reject => "reject",
            Self::Audit => "audit",
            Self::Task => "task",
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a stored record is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordName {
    /// A resource.
    Resource(ResourceId),
    /// A subscription.
    Subscription(SubscriptionId),
    /// A document.
    Document(DocumentKey),
    /// A row.
    Row(RowKey),
    /// The state of a lane.
    Lane(LaneId),
    /// A job.
    Job(JobId),
    /// A consumer.
    Consumer(ConsumerId),
    /// A message that became no document.
    Reject(RejectId),
    /// An entry of the log of what was done.
    Audit(AuditEntryId),
    /// One whose name cannot be read either.
    Unnamed {
        /// What it is among.
        kind: RecordKind,
        /// Its name as the store shows it.
        shown: String,
    },
}

impl RecordName {
    /// What kind of thing it is.
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Resource(_) => RecordKind::Resource,
            Self::Subscription(_) => RecordKind::Subscription,
            Self::Document(_) => RecordKind::Document,
            Self::Row(_) => RecordKind::Row,
            Self::Lane(_) => RecordKind::Lane,
            Self::Job(_) => RecordKind::Job,
            Self::Consumer(_) => RecordKind::Consumer,
            Self::Reject(_) => RecordKind::Reject,
            Self::Audit(_) => RecordKind::Audit,
            Self::Unnamed { kind, .. } => *kind,
        }
    }
}

impl fmt::Display for RecordName {
    /// The name without the kind: of a document its URL, of a row subscription and URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(id) => id.fmt(f),
            Self::Subscription(id) => id.fmt(f),
            Self::Document(key) => key.url.fmt(f),
            Self::Row(key) => write!(f, "{} {}", key.subscription, key.url),
            Self::Lane(id) => id.fmt(f),
            Self::Job(id) => id.fmt(f),
            Self::Consumer(id) => id.fmt(f),
            Self::Reject(id) => id.fmt(f),
            Self::Audit(id) => id.fmt(f),
            Self::Unnamed { shown, .. } => f.write_str(shown),
        }
    }
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyUnreadable {
    /// A worker must know a newer format: a newer version wrote it, and reads it.
    Newer {
        /// The format.
        needs: u32,
    },
    /// It is nothing that any version wrote.
    Damaged {
        /// What is wrong with it, in words.
        detail: String,
    },
}

impl fmt::Display for WhyUnreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { needs } => {
                write!(f, "a worker must know format {needs}, this version knows {RECORD_FORMAT}")
            }
            Self::Damaged { detail } => f.write_str(detail),
        }
    }
}

/// A stored record that this version cannot read, and what is known of it all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreadable {
    /// What it is called.
    pub record: RecordName,
    /// Why it cannot be read.
    pub why: WhyUnreadable,
    /// Of which resource it is, if that can be read: subscriptions and consumers only.
    pub resource: Option<ResourceId>,
    /// Whether it is deleted, and only has to be removed: a subscription that is deleting, a resource
    /// that is deleted.
    pub deleted: bool,
}

impl Unreadable {
    /// A record that cannot be read.
    pub const fn new(record: RecordName, why: WhyUnreadable) -> Self {
        Self { record, why, resource: None, deleted: false }
    }

    /// One that nothing wrote like this.
    pub fn damaged(record: RecordName, detail: impl Into<String>) -> Self {
        Self::new(record, WhyUnreadable::Damaged { detail: detail.into() })
    }

    /// The same, of a resource.
    #[must_use]
    pub const fn of(mut self, resource: Option<ResourceId>) -> Self {
        self.resource = resource;
        self
    }

    /// The same, deleted or not.
    #[must_use]
    pub const fn deleted(mut self, deleted: bool) -> Self {
        self.deleted = deleted;
        self
    }

    /// Whether a newer version reads it.
    pub const fn is_newer(&self) -> bool {
        matches!(self.why, WhyUnreadable::Newer { .. })
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.record.kind(), self.record, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_record_and_why() {
        let id = SubscriptionId::from_bytes([1; 16]);
        let newer = Unreadable::new(
            RecordName::Subscription(id),
            WhyUnreadable::Newer { needs: RECORD_FORMAT + 1 },
        );
        assert_eq!(
            newer.to_string(),
            "subscription 01010101-0101-0101-0101-010101010101: \
             a worker must know format 5, this version knows 4"
        );
        let shown = "7".to_owned();
        let name = RecordName::Unnamed { kind: RecordKind::Row, shown };
        assert_eq!(
            Unreadable::damaged(name, "_id is a number").to_string(),
            "row 7: _id is a number"
        );
    }

    #[test]
    fn kinds_are_called_differently() {
        let names: std::collections::BTreeSet<_> =
            RecordKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(names.len(), RecordKind::ALL.len());
    }
}
