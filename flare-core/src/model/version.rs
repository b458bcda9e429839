//! Takes revisions; gives the total order in which a document's states follow each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Revision;

/// One state of a document: `live(r) < gone(r) < live(r + 1)`.
///
/// A put makes `live(r)`, a delete makes `gone(r)`. "Never" is `Option::<Version>::None`, which
/// sorts below every version.
///
/// ```
/// use flare_core::model::{Revision, Version};
///
/// let live = |r| Version::live(Revision::new(r));
/// let gone = |r| Version::gone(Revision::new(r));
/// assert!(live(1) < gone(1) && gone(1) < live(2));
/// assert!(None < Some(live(i64::MIN)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    // The order of the fields is the order of versions.
    revision: Revision,
    gone: bool,
}

impl Version {
    /// The document as it is at `revision`.
    pub const fn live(revision: Revision) -> Self {
        Self { revision, gone: false }
    }

    /// The document deleted at `revision`.
    pub const fn gone(revision: Revision) -> Self {
        Self { revision, gone: true }
    }

    /// The revision it was written or deleted at.
    pub const fn revision(self) -> Revision {
        self.revision
    }

    /// Whether the document is deleted in this version.
    pub const fn is_gone(self) -> bool {
        self.gone
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.gone { "gone" } else { "live" };
        write!(f, "{state}({})", self.revision)
    }
}
