//! Takes a place and what a connection is for; gives the connection, set up as every one of that kind is.

use std::time::Duration;

use flare_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, OpenFlags};

use crate::error;
use crate::file::Place;

/// The first SQLite without a fault by which a reset of the log could corrupt the file.
const LEAST_SQLITE: i32 = 3_051_003;

/// How long to wait for another process that is writing, and how often to look.
const BUSY_LIMIT: Duration = Duration::from_secs(10);
const BUSY_EVERY: Duration = Duration::from_micros(500);

/// Statements that a connection keeps prepared: more than there are.
const STATEMENTS: usize = 256;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It writes what the stores are asked to.
    Writer,
    /// It reads, beside whoever writes.
    Reader,
    /// It moves what is in the log to its place, or looks after the file.
    Keeper,
}

impl Role {
    /// Pages that it keeps in memory, in KiB.
    fn cache(self) -> i64 {
        match self {
            Self::Writer => 64 << 10,
            Self::Reader => 16 << 10,
            Self::Keeper => 2 << 10,
        }
    }
}

/// Opens a file that is there.
pub(crate) fn open(place: &Place, role: Role) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    #[allow(unused_mut, reason = "some versions of rusqlite change it")]
    let mut connection = Connection::open_with_flags(place.path(), flags)?;
    connection.busy_handler(Some(wait_for_others as fn(i32) -> bool))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let set = |name: &str, value: &dyn rusqlite::ToSql| {
        connection.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|error| {
            match error {
                rusqlite::Error::QueryReturnedNoRows => Ok(()),
                error => Err(error),
            }
        })
    };
    // Every commit is on disk before it is answered; checkpoints have a connection of their own.
    set("synchronous", &"FULL")?;
    set("wal_autocheckpoint", &0)?;
    // A stray write through memory would be a corruption.
    set("mmap_size", &0)?;
    set("cache_size", &-role.cache())?;
    set("temp_store", &"MEMORY")?;
    set("foreign_keys", &false)?;
    set("trusted_schema", &false)?;
    // What a burst left is given back; below, the log is written over instead of growing anew.
    set("journal_size_limit", &(64_i64 << 20))?;
    if role == Role::Reader {
        set("query_only", &true)?;
    }
    Ok(connection)
}

/// Called by SQLite while somebody else has the lock, with how often it was before.
fn wait_for_others(times: i32) -> bool {
    if BUSY_EVERY * u32::try_from(times).unwrap_or(u32::MAX) >= BUSY_LIMIT {
        return false;
    }
    std::thread::sleep(BUSY_EVERY);
    true
}

/// Refuses a SQLite that is too old to be trusted with a log.
pub(crate) fn check_library() -> Result<()> {
    check_version(rusqlite::version_number(), rusqlite::version())
}

fn check_version(number: i32, shown: &str) -> Result<(), Error> {
    if number >= LEAST_SQLITE {
        return Ok(());
    }
    let detail = format!(
        "SQLite {shown} is linked; before 3.51.3 a reset of its log could corrupt the file: use the \
         feature `bundled` of rusqlite, or a newer library"
    );
    Err(error::of(ErrorKind::Unsupported, "open", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_comes_with_it_is_new_enough() {
        check_library().unwrap();
    }

    #[test]
    fn an_older_one_is_refused() {
        let refused = check_version(3_051_002, "3.51.2").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.to_string().contains("SQLite 3.51.2"), "{refused}");
        check_version(3_051_003, "3.51.3").unwrap();
    }
}
