//! Takes a resource's `change` and a document's bytes; gives the document's revision. Never builds
//! the document in memory.

mod change;
mod field;
mod find;
mod given;
mod shown;
mod value;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use change::{ChangeFormat, ChangeRule};
pub use field::ChangeField;
pub(super) use field::{PathStep, pointer_path};
pub(super) use find::{FoundValue, find};
pub use given::GivenRevision;
pub use shown::ShownRevision;

/// Which version of a document is newer: strictly greater is newer.
///
/// It is the integer that the document holds or, where the resource has a format, the instant in
/// Unix nanoseconds. [`ChangeRule::show`] gives the form that people and clients see.
///
/// ```
/// use flare_core::model::Revision;
///
/// assert!(Revision::new(8) > Revision::new(7));
/// assert_eq!(Revision::new(-3).to_string(), "-3");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(i64);

impl Revision {
    /// The revision of this number.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// Its number: the integer, or Unix nanoseconds where the resource has a format.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl From<i64> for Revision {
    fn from(number: i64) -> Self {
        Self(number)
    }
}

impl From<Revision> for i64 {
    fn from(revision: Revision) -> Self {
        revision.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
