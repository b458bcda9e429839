//! The numbered changes that led to the schema's shape of today, of each part.

use flare_core::port::Part;

/// One numbered change of what is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub(crate) number: i32,
    /// What it changes, for whoever is asked whether to run it.
    pub(crate) about: &'static str,
    pub(crate) sql: &'static str,
}

const REPOSITORY: &[Migration] = &[
    Migration {
        number: 1,
        about: "tables and indexes of documents, subscriptions and rows",
        sql: include_str!("../../sql/repository.1.sql"),
    },
    Migration {
        number: 2,
        about: "functions that put and delete from plain SQL",
        sql: include_str!("../../sql/repository.2.sql"),
    },
    Migration {
        number: 3,
        about: "functions and triggers that make documents of a table's rows",
        sql: include_str!("../../sql/repository.3.sql"),
    },
    Migration {
        number: 4,
        about: "documents that change without their indexes; lists of the undispatched, and tombstones",
        sql: include_str!("../../sql/repository.4.sql"),
    },
    Migration {
        number: 5,
        about: "tables and indexes of consumers, and of their messages that became no document",
        sql: include_str!("../../sql/repository.5.sql"),
    },
    Migration {
        number: 6,
        about: "documents that are made before others are locked, so that hosts and Flare never wait in a circle",
        sql: include_str!("../../sql/repository.6.sql"),
    },
    Migration {
        number: 7,
        about: "documents that are announced to those who listen",
        sql: include_str!("../../sql/repository.7.sql"),
    },
    Migration {
        number: 8,
        about: "what operators and nodes did",
        sql: include_str!("../../sql/repository.8.sql"),
    },
    Migration {
        number: 9,
        about: "documents that are put where the queue is elsewhere",
        sql: include_str!("../../sql/repository.9.sql"),
    },
];

const QUEUE: &[Migration] = &[
    Migration {
        number: 1,
        about: "tables and indexes of queues and messages",
        sql: include_str!("../../sql/queue.1.sql"),
    },
    Migration {
        number: 2,
        about: "the table that says whether somebody listens for messages",
        sql: include_str!("../../sql/queue.2.sql"),
    },
];

const LEASE: &[Migration] = &[Migration {
    number: 1,
    about: "tables and indexes of leases and keys",
    sql: include_str!("../../sql/lease.1.sql"),
}];

/// What leads to the newest version of a part.
pub(crate) fn of_part(part: Part) -> &'static [Migration] {
    match part {
        Part::Repository => REPOSITORY,
        Part::Queue => QUEUE,
        Part::Lease => LEASE,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one() {
        for part in Part::ALL {
            let numbers = of_part(part).iter().map(|migration| migration.number);
            assert!(numbers.eq((1..).take(of_part(part).len())), "{part}");
        }
    }
}
