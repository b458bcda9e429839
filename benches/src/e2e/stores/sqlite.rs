//! A SQLite file of its own in the system's directory for temporary files, which should be on a disk: on a
//! file system in memory a commit costs nothing.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_sqlite::SqliteBackend;
use flare_benches::measure::time;
use flare_core::Backend;
use rusqlite::Connection;

use super::{MeasuredStore, Weight, unique_name};
use crate::Result;

/// Tables that together hold what is known of a document, and of a row.
const TABLES: [(&str, &[&str]); 2] = [("document", &["documents", "contents"]), ("row", &["rows"])];

pub(super) struct OnSqlite {
    directory: PathBuf,
    /// A connection that Flare knows nothing of, once there was a bare write.
    bare: Mutex<Option<Connection>>,
}

impl OnSqlite {
    pub(super) fn make() -> Result<Self> {
        let directory = std::env::temp_dir().join(unique_name());
        std::fs::create_dir(&directory)?;
        Ok(Self { directory, bare: Mutex::default() })
    }

    fn file(&self) -> PathBuf {
        self.directory.join("flare.db")
    }

    /// A connection as safe as Flare's own, and a table with one row in the same file.
    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(self.file())?;
        connection.execute_batch(
            "PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE IF NOT EXISTS bare (one INTEGER PRIMARY KEY, n INTEGER NOT NULL);
             INSERT OR IGNORE INTO bare VALUES (1, 0);",
        )?;
        Ok(connection)
    }
}

#[async_trait]
impl MeasuredStore for OnSqlite {
    async fn open(&self) -> Result<Backend> {
        Ok(SqliteBackend::open(self.file())?.into())
    }

    async fn bare_write(&self) -> Result<Option<Duration>> {
        let mut bare = self.bare.lock().unwrap_or_else(PoisonError::into_inner);
        if bare.is_none() {
            *bare = Some(self.connect()?);
        }
        let Some(connection) = bare.as_ref() else { return Ok(None) };
        let mut write = connection.prepare_cached("UPDATE bare SET n = n + 1")?;
        let took = time(|| write.execute([]).map(drop))?;
        Ok(Some(took))
    }

    async fn weights(&self) -> Result<Vec<Weight>> {
        let connection = Connection::open(self.file())?;
        let weigh = |(what, tables): (&'static str, &[&str])| {
            let (mut stored, mut indexes) = (0_u64, 0_u64);
            for table in tables {
                // Of a table itself name and tbl_name are the same.
                let bytes = "SELECT s.name = s.tbl_name, coalesce(sum(d.pgsize), 0)
                             FROM sqlite_schema s JOIN dbstat d ON d.name = s.name
                             WHERE s.tbl_name = ?1 GROUP BY 1";
                let mut bytes = connection.prepare(bytes)?;
                let mut found = bytes.query([table])?;
                while let Some(row) = found.next()? {
                    let sum = if row.get(0)? { &mut stored } else { &mut indexes };
                    *sum += row.get::<_, i64>(1)?.unsigned_abs();
                }
            }
            let count = format!("SELECT count(*) FROM {}", tables.first().unwrap_or(&""));
            let records: i64 = connection.query_row(&count, [], |row| row.get(0))?;
            Ok(Weight { what, records: records.unsigned_abs(), stored, indexes })
        };
        TABLES.into_iter().map(weigh).collect()
    }

    async fn remove(self: Box<Self>) -> Result<()> {
        // Dropping it is enough.
        Ok(())
    }
}

impl Drop for OnSqlite {
    /// Also of a run that failed nothing is left, for it may be gigabytes.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_file_weighs_something() {
        let store = OnSqlite::make().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let backend = runtime.block_on(store.open()).unwrap();
        let weights = runtime.block_on(store.weights()).unwrap();
        drop(backend);
        let kinds: Vec<&str> = weights.iter().map(|weight| weight.what).collect();
        assert_eq!(kinds, ["document", "row"]);
        for weight in weights {
            // A table and an index have a page each, however little is in them.
            assert!(weight.stored >= 4096 && weight.indexes >= 4096, "{weight:?}");
        }
        assert!(runtime.block_on(store.bare_write()).unwrap().is_some());
    }
}
