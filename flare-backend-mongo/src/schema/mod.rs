//! What Flare keeps in a database, as data: collections, the indexes its queries need, and the
//! numbered migrations that lead there.

mod build;
mod check;
mod collection;

pub(crate) use build::build;
pub(crate) use check::ready;
pub(crate) use collection::{CollectionSpec, IndexSpec, Only};

use crate::{lease, queue, repository};

/// A part of Flare that can be set up, checked and moved by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Area {
    Repository,
    Queue,
    Lease,
}

impl Area {
    /// The name of the area's record in `flare_schema`, and of the part on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Queue => "queue",
            Self::Lease => "lease",
        }
    }

    /// What the area keeps.
    pub(crate) fn collections(self) -> &'static [CollectionSpec] {
        match self {
            Self::Repository => repository::COLLECTIONS,
            Self::Queue => queue::COLLECTIONS,
            Self::Lease => lease::COLLECTIONS,
        }
    }

    /// The number of the newest migration.
    pub(crate) fn version(self) -> i32 {
        1
    }
}

/// Where each area's schema version is recorded: `{_id: "repository", version: 1}`.
pub(crate) const SCHEMA: &str = "schema";
