//! A connection that reads, as work sees it: statements over one state of the file, and the store's time.

use flare_core::model::Timestamp;
use rusqlite::{CachedStatement, Connection};

use crate::time::{Machine, StoreClock};

/// A read of one state of the file.
pub(crate) struct Reader<'a> {
    pub(crate) connection: &'a Connection,
    machine: &'a Machine,
}

impl<'a> Reader<'a> {
    /// Reads with `work`, all of it from the same state.
    pub(super) fn read<T>(
        connection: &'a Connection,
        machine: &'a Machine,
        work: impl FnOnce(&Self) -> crate::fault::Worked<T>,
    ) -> crate::fault::Worked<T> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        let read = work(&Self { connection, machine });
        // SQLite may have ended it by itself. Why the work failed says more than how its end did.
        if !connection.is_autocommit() {
            let end = if read.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = connection.prepare_cached(end).and_then(|mut end| end.execute([]));
            if read.is_ok() {
                ended?;
            }
        }
        read
    }

    /// A statement, prepared the first time.
    pub(crate) fn sql(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(sql)
    }

    /// The store's time.
    pub(crate) fn now(&self) -> rusqlite::Result<Timestamp> {
        let ahead = self.sql("SELECT ahead FROM store")?.query_row([], |row| row.get(0))?;
        Ok(StoreClock { ahead }.at(self.machine.uptime()))
    }
}
