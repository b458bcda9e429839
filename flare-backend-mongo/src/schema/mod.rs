//! What Flare keeps in a database, as data: collections, the indexes its queries need, and the
//! numbered migrations that lead there.

mod build;
mod check;
mod collection;
mod definition;
mod lack;
mod migrate;
mod migration;
mod state;

pub(crate) use build::{create_collection, create_index};
pub(crate) use check::ready;
pub(crate) use collection::{CollectionSpec, IndexSpec, Only};
pub(crate) use definition::Definition;
pub(crate) use lack::{Lack, lacks};
pub(crate) use migrate::migrate;
pub use migration::Migration;
pub(crate) use state::SchemaState;

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

    /// What leads to the newest version, which is the number of the last.
    pub(crate) fn migrations(self) -> &'static [Migration] {
        match self {
            Self::Repository => migration::REPOSITORY,
            Self::Queue => migration::QUEUE,
            Self::Lease => migration::LEASE,
        }
    }
}

/// Where each area's schema version is recorded: `{_id: "repository", version: 1}`, and while a
/// migration runs `running: {to: 2, at}` beside it.
pub(crate) const SCHEMA: &str = "schema";
