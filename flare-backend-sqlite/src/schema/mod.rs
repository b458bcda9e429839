//! The shape of the file, as data: numbered migrations that lead to it, and what a file that is opened is
//! like, seen from them.

mod migration;
mod state;

use flare_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, TransactionBehavior};

use crate::error;
use crate::file::Place;
pub use migration::Migration;
pub(crate) use migration::{MIGRATIONS, newest};
pub(crate) use state::SchemaState;

const OPERATION: &str = "open";
/// What the header of a file says that is Flare's.
const APPLICATION: i32 = 0x466C_6172;
/// For people; nothing of Flare reads them.
const VIEWS: &str = include_str!("../../sql/views.sql");

/// Makes the file's shape what it is to be, or says why it cannot be.
pub(crate) fn prepare(
    connection: &mut Connection,
    place: &Place,
    migrations: &[Migration],
) -> Result<()> {
    let standing = SchemaState::of(connection, migrations).map_err(|error| failed(place, error))?;
    if let Some(refusal) = standing.refusal(OPERATION, place, migrations) {
        return Err(refusal);
    }
    if standing == SchemaState::Empty {
        create(connection).map_err(|error| failed(place, error))?;
    }
    keep_a_log(connection, place)?;
    migrate(connection, migrations).map_err(|error| failed(place, error))
}

fn failed(place: &Place, error: rusqlite::Error) -> Error {
    let error = error::from_sqlite(OPERATION, error);
    let detail = format!("{}: {}", place.path().display(), error.detail());
    error.with_detail(detail)
}

/// Sets what can only be set while there is nothing in the file.
fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    connection.execute_batch(&format!("PRAGMA application_id = {APPLICATION}"))
}

/// Has changes written to a log beside the file first.
fn keep_a_log(connection: &Connection, place: &Place) -> Result<()> {
    let mode: String = connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(|error| failed(place, error))?;
    if mode == "wal" {
        return Ok(());
    }
    let detail = format!(
        "{} is on a file system that cannot keep a log beside it (journal mode {mode})",
        place.path().display()
    );
    Err(error::of(ErrorKind::Unsupported, OPERATION, detail).with_field("path"))
}

/// Runs the migrations that are missing, each in a transaction of its own that records it.
pub(crate) fn migrate(
    connection: &mut Connection,
    migrations: &[Migration],
) -> rusqlite::Result<()> {
    let newest = newest(migrations);
    for migration in migrations {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i32 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version != migration.number - 1 {
            continue;
        }
        transaction.execute_batch(migration.sql)?;
        // With the last one, so that a process that dies in between leaves no file without them.
        if migration.number == newest {
            transaction.execute_batch(VIEWS)?;
        }
        transaction.pragma_update(None, "user_version", migration.number)?;
        transaction.commit()?;
    }
    Ok(())
}
