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
    pub const fn all() -> [Self; 1] {
        [FIRST]
    }
}

const FIRST: Migration =
    Migration::new(1, "tables and indexes of the first version", include_str!("../../sql/001.sql"));

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
