//! Takes a document's URL, content and version; gives the value the stores keep. Never changes
//! a byte of the content.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    ChangeRule, DocumentUrl, Invalid, ResourceId, Revision, Timestamp, TraceContext, Version,
};

/// What a document is known by: its resource and its URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocumentKey {
    /// The kind of document.
    pub resource: ResourceId,
    /// Its URL, in normal form.
    pub url: DocumentUrl,
}

impl DocumentKey {
    /// The document of `resource` at `url`.
    pub fn new(resource: ResourceId, url: DocumentUrl) -> Self {
        Self { resource, url }
    }
}

/// A document's JSON object, byte for byte as the origin handed it over.
///
/// Key order, number spelling and white space survive: no parser ever rewrites it.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Bytes);

impl Content {
    /// Checks that `bytes` are one JSON object with a readable revision, and keeps them.
    ///
    /// ```
    /// use flare_core::model::{ChangeRule, Content};
    ///
    /// let rule = ChangeRule::new("rev", None)?;
    /// let (revision, content) = Content::parse(&rule, r#"{"rev":12, "big":12345678901234567890123}"#.into())?;
    /// assert_eq!(revision.get(), 12);
    /// assert_eq!(content.as_bytes(), br#"{"rev":12, "big":12345678901234567890123}"#);
    /// # Ok::<(), flare_core::model::Invalid>(())
    /// ```
    pub fn parse(rule: &ChangeRule, bytes: Bytes) -> Result<(Revision, Self), Invalid> {
        let revision = rule.read(&bytes)?;
        Ok((revision, Self(bytes)))
    }

    /// Content read back from a store, which took it from a [`Content`] that was parsed.
    pub fn from_stored(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The JSON text, shared.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Documents may hold what must not reach a log.
        write!(f, "Content({} bytes)", self.0.len())
    }
}

/// One bounded group of a resource's subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartitionId(u32);

impl PartitionId {
    /// The partition with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The newest stored state of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// What it is known by.
    pub key: DocumentKey,
    /// Its newest version.
    pub version: Version,
    /// Its content; of a deleted document the last known one, if there ever was one.
    pub content: Option<Content>,
    /// When `version` was stored, by the store's clock.
    pub updated_at: Timestamp,
    /// The newest version whose rows are all spread. The document is *undispatched* while this
    /// is below `version`.
    pub dispatched: Option<Version>,
    /// The partitions that still have to spread `version`; `None` while they are not known yet.
    pub open: Option<Vec<PartitionId>>,
    /// The trace the version arrived with.
    pub trace: Option<TraceContext>,
    /// Where the document came from, until its version is dispatched.
    pub moved_from: Option<MovedFrom>,
}

/// A note of a document that a more specific resource took over: where it was live before, and
/// which version of it has to be gone there before anybody is told of the document here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedFrom {
    /// The less specific resource.
    pub resource: ResourceId,
    /// The live version it held.
    pub version: Version,
}

impl MovedFrom {
    /// From `resource`, where it was at `version`.
    pub const fn new(resource: ResourceId, version: Version) -> Self {
        Self { resource, version }
    }
}

impl Document {
    /// A document as it is right after `version` was stored and before anything was spread.
    pub fn new(key: DocumentKey, version: Version, updated_at: Timestamp) -> Self {
        Self {
            key,
            version,
            content: None,
            updated_at,
            dispatched: None,
            open: None,
            trace: None,
            moved_from: None,
        }
    }

    /// Whether some of the newest version's rows may still be missing.
    pub fn is_undispatched(&self) -> bool {
        self.dispatched < Some(self.version)
    }

    /// Whether a version still has to be spread: it is the stored one, and some of its rows may be missing.
    pub fn owes(&self, version: Version) -> bool {
        self.version == version && self.is_undispatched()
    }
}
