//! The numbered changes that led to the file's shape of today.

/// One numbered change of what is kept.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub(crate) number: i32,
    /// What it changes, for whoever is asked whether to run it.
    pub(crate) about: &'static str,
    pub(crate) sql: &'static str,
}

impl Migration {
    /// One that is made up for a test.
    #[doc(hidden)]
    pub const fn new(number: i32, about: &'static str, sql: &'static str) -> Self {
        Self { number, about, sql }
    }

    /// Those of Flare, for tests that append others.
    #[doc(hidden)]
    pub const fn all() -> [Self; 4] {
        [FIRST, HELD_MESSAGES, CONSUMERS, AUDIT]
    }
}

const FIRST: Migration =
    Migration::new(1, "tables and indexes of the first version", include_str!("../../sql/001.sql"));

const HELD_MESSAGES: Migration =
    Migration::new(2, "who has a message of a queue out", include_str!("../../sql/002.sql"));

const CONSUMERS: Migration =
    Migration::new(3, "inputs that documents are pulled from", include_str!("../../sql/003.sql"));

const AUDIT: Migration =
    Migration::new(4, "what operators and nodes did", include_str!("../../sql/004.sql"));

/// What leads to the newest version, which is the number of the last.
pub(crate) const MIGRATIONS: &[Migration] = &Migration::all();

/// The version that all of them lead to.
pub(crate) fn newest(migrations: &[Migration]) -> i32 {
    migrations.last().map_or(0, |last| last.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one() {
        let numbers = MIGRATIONS.iter().map(|migration| migration.number);
        assert!(numbers.eq((1..).take(MIGRATIONS.len())));
    }
}
