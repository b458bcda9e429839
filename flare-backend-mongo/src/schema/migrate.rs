//! Takes one migration; runs it, with a note in `flare_schema` while it runs. Nodes that run the
//! same at once all do its work, and one of them records it: versions only go up, one by one.

use flare_core::Result;
use mongodb::bson::{Document, doc};

use super::build::fill_in;
use super::{Area, Migration, SCHEMA};
use crate::connection::Connection;
use crate::error::{self, DUPLICATE_KEY};

const OPERATION: &str = "setup";

/// Runs a migration of an area that is at the version before it; tells whether it was, and nobody
/// else has recorded the migration meanwhile.
pub(crate) async fn migrate(
    connection: &Connection,
    area: Area,
    migration: &Migration,
) -> Result<bool> {
    let before = doc! { "_id": area.name(), "version": migration.number - 1 };
    if !begin(connection, &before, migration).await? {
        return Ok(false);
    }
    fill_in(connection, area).await?;
    if let Some(records) = migration.records {
        // As long as it takes, which is not the time of one call.
        let changed = records(connection.database().clone()).await;
        changed.map_err(|error| error::from_driver(OPERATION, error))?;
    }
    let ended = doc! { "$set": { "version": migration.number }, "$unset": { "running": "" } };
    let schema = connection.collection(SCHEMA);
    let call = schema.update_one(before, ended);
    Ok(connection.run(OPERATION, call).await?.matched_count == 1)
}

/// Notes that the migration runs, if the area is at the version before it.
async fn begin(connection: &Connection, before: &Document, migration: &Migration) -> Result<bool> {
    let schema = connection.collection(SCHEMA);
    let running = doc! {
        "$set": { "running.to": migration.number },
        "$currentDate": { "running.at": true },
    };
    let note = schema.update_one(before.clone(), running.clone());
    if connection.run(OPERATION, note).await?.matched_count == 1 {
        return Ok(true);
    }
    // Only the first migration may meet a database without a record.
    if migration.number != 1 {
        return Ok(false);
    }
    let note = schema.update_one(before.clone(), running.clone()).upsert(true);
    match connection.reach(OPERATION, async { Ok(note.await) }).await? {
        Ok(_) => Ok(true),
        // It was recorded at the same moment: begun like here, or further.
        Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {
            let note = schema.update_one(before.clone(), running);
            Ok(connection.run(OPERATION, note).await?.matched_count == 1)
        }
        Err(error) => Err(error::from_driver(OPERATION, error)),
    }
}
