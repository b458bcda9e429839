//! The stores that `e2e` can measure Flare on: each gives the ports of a Flare, and says what Flare's own
//! writes are compared with.

mod memory;
mod mongodb;
mod postgresql;
mod sqlite;

use std::time::Duration;

use async_trait::async_trait;
use flare_core::Backend;
use memory::InMemory;
use mongodb::OnMongodb;
use postgresql::OnPostgresql;
pub(crate) use postgresql::server as postgresql_server;
use sqlite::OnSqlite;

use crate::Result;

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    Sqlite,
    Mongodb,
    Postgresql,
}

impl StoreKind {
    const ALL: [Self; 4] = [Self::Memory, Self::Sqlite, Self::Mongodb, Self::Postgresql];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Mongodb => "mongodb",
            Self::Postgresql => "postgresql",
        }
    }

    pub(super) fn parse(name: Option<&&str>) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|kind| name == Some(&kind.as_str()));
        let names = || Self::ALL.map(Self::as_str).join(", ");
        known.ok_or_else(|| format!("--store needs one of {}", names()).into())
    }

    /// A store with nothing in it.
    pub(crate) async fn make(self) -> Result<Box<dyn MeasuredStore>> {
        Ok(match self {
            Self::Memory => Box::new(InMemory::default()),
            Self::Sqlite => Box::new(OnSqlite::make()?),
            Self::Mongodb => Box::new(OnMongodb::make().await?),
            Self::Postgresql => Box::new(OnPostgresql::make().await?),
        })
    }
}

/// A store that a Flare of this run has for itself.
#[async_trait]
pub(crate) trait MeasuredStore: Send + Sync {
    /// The ports, opened anew.
    async fn open(&self) -> Result<Backend>;

    /// The least that a store of this kind has to do for a change to be safe: one record written by itself,
    /// and how long that took. None where nothing is safe.
    async fn bare_write(&self) -> Result<Option<Duration>>;

    /// What a document and a row take on disk; nothing where there is no disk.
    async fn weights(&self) -> Result<Vec<Weight>>;

    /// Removes it. No Flare uses it any more.
    async fn remove(self: Box<Self>) -> Result<()>;
}

/// What records of one kind take on disk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weight {
    /// A document, or a row.
    pub(super) what: &'static str,
    pub(super) records: u64,
    /// Bytes of all of them, without their indexes.
    pub(super) stored: u64,
    /// Bytes of their indexes.
    pub(super) indexes: u64,
}

impl Weight {
    /// Bytes of one, its part of the indexes included.
    pub(super) fn each(&self) -> f64 {
        (self.stored + self.indexes) as f64 / self.records as f64
    }
}

/// A name that no other store of any run has at the same time.
fn unique_name() -> String {
    format!("flare-e2e-{}-{}", std::process::id(), super::now_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_known_by_name() {
        for kind in StoreKind::ALL {
            assert_eq!(StoreKind::parse(Some(&kind.as_str())).unwrap(), kind);
        }
        for wrong in [None, Some(&"SQLite"), Some(&"")] {
            let refused = StoreKind::parse(wrong).unwrap_err().to_string();
            assert_eq!(refused, "--store needs one of memory, sqlite, mongodb, postgresql");
        }
    }

    #[test]
    fn a_record_weighs_its_part_of_the_indexes_too() {
        let weight = Weight { what: "row", records: 4, stored: 100, indexes: 20 };
        assert_eq!(weight.each(), 30.0);
    }
}
