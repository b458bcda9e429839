//! The numbered changes that led to what is kept today.

use futures::FutureExt;
use futures::future::BoxFuture;
use mongodb::Database;

use crate::connection::PREFIX;
use crate::repository::{SUBSCRIPTIONS, fill_in_hashes};

/// One numbered change of what an area keeps. Collections and indexes are made as they are wanted
/// today before any of them runs; what a migration brings of its own is what it does to records.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub(crate) number: i32,
    /// What it changes, for whoever is asked whether to run it.
    pub(crate) about: &'static str,
    pub(crate) records: Option<Records>,
}

/// Changes records. It may have run before, in part or as a whole, and may be running elsewhere at
/// the same time, so it has to come to the same end however often it begins.
pub(crate) type Records = fn(Database) -> BoxFuture<'static, mongodb::error::Result<()>>;

impl Migration {
    /// One that is made up for a test.
    #[doc(hidden)]
    pub const fn of_records(number: i32, about: &'static str, records: Records) -> Self {
        Self { number, about, records: Some(records) }
    }

    /// Those of the repository, for tests that append others.
    #[doc(hidden)]
    pub const fn of_the_repository() -> [Self; 6] {
        [FIRST, ROWS_BY_DOCUMENT, ROWS_ON_DEMAND, SUBSCRIPTIONS_BY_SLOT, CONSUMERS, AUDIT]
    }
}

const FIRST: Migration =
    Migration { number: 1, about: "collections and indexes of the first version", records: None };

const ROWS_BY_DOCUMENT: Migration =
    Migration { number: 2, about: "an index of rows by their document", records: None };

const ROWS_ON_DEMAND: Migration =
    Migration { number: 3, about: "indexes of rows on demand and of deletions", records: None };

const SUBSCRIPTIONS_BY_SLOT: Migration = Migration {
    number: 4,
    about: "subscriptions by the slot that works them",
    records: Some(hash_subscriptions),
};

const CONSUMERS: Migration =
    Migration { number: 5, about: "collections of consumers and their rejects", records: None };

const AUDIT: Migration =
    Migration { number: 6, about: "a collection of what operators and nodes did", records: None };

fn hash_subscriptions(database: Database) -> BoxFuture<'static, mongodb::error::Result<()>> {
    let subscriptions = database.collection(&format!("{PREFIX}{SUBSCRIPTIONS}"));
    async move { fill_in_hashes(&subscriptions).await }.boxed()
}

pub(super) const REPOSITORY: &[Migration] = &Migration::of_the_repository();
pub(super) const QUEUE: &[Migration] = &[FIRST];
pub(super) const LEASE: &[Migration] = &[FIRST];

/// The version that all of them lead to.
pub(crate) fn newest(migrations: &[Migration]) -> i32 {
    migrations.last().map_or(0, |last| last.number)
}

#[cfg(test)]
mod tests {
    use super::super::Area;

    #[test]
    fn migrations_are_numbered_from_one() {
        for area in [Area::Repository, Area::Queue, Area::Lease] {
            let numbers = area.migrations().iter().map(|migration| migration.number);
            assert!(numbers.eq((1..).take(area.migrations().len())), "{area:?}");
        }
    }
}
