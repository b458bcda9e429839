//! Takes an area; makes its collections and indexes where they are missing, and runs the migrations
//! that have not run. Any number of nodes may do so at once.

use std::time::Duration;

use flare_core::{Error, ErrorKind, Result};

use super::lack::{Lack, is_there, lacks};
use super::migration::Migration;
use super::{Area, CollectionSpec, IndexSpec, SchemaState, migrate};
use crate::BACKEND;
use crate::connection::Connection;
use crate::error;

const OPERATION: &str = "setup";

/// NamespaceExists: somebody else has just created it.
const EXISTS: i32 = 48;
/// IndexBuildAborted, ConflictingOperationInProgress, BackgroundOperationInProgressForNamespace:
/// somebody else drops or builds an index there.
const BUSY_BUILDING: [i32; 3] = [276, 117, 12587];
/// How often an index whose build others disturb is tried again, and how long after.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Brings an area to its newest version.
pub(super) async fn build(
    connection: &Connection,
    area: Area,
    migrations: &[Migration],
) -> Result<()> {
    let standing = SchemaState::load(connection, OPERATION, area, migrations).await?;
    let version = standing.version(migrations);
    for migration in migrations.iter().filter(|it| i64::from(it.number) > version) {
        migrate(connection, area, migration).await?;
    }
    Ok(())
}

/// Creates the collections and indexes of an area that are missing. An index of another definition
/// under the name of one is left alone: who else needs it is unknown.
pub(super) async fn fill_in(connection: &Connection, area: Area) -> Result<()> {
    for lack in lacks(connection, OPERATION, area.collections()).await? {
        match lack {
            Lack::Collection(collection) => {
                create_collection(connection, OPERATION, collection).await?;
            }
            Lack::Index(collection, index) => {
                create_index(connection, OPERATION, collection, index).await?;
            }
            Lack::Differing(collection, index, actual) => {
                let (collection, area) = (collection.full_name(), area.name());
                let detail = format!(
                    "index {} of {collection} is {actual}, which is not what Flare needs: run \
                     `flare setup {area}`, which builds it anew",
                    index.name
                );
                let error = Error::new(ErrorKind::Conflict, OPERATION).with_backend(BACKEND);
                return Err(error.with_detail(detail));
            }
        }
    }
    Ok(())
}

/// Creates a collection; tells whether it was not there.
pub(crate) async fn create_collection(
    connection: &Connection,
    operation: &'static str,
    collection: &CollectionSpec,
) -> Result<bool> {
    let call = connection.database().create_collection(collection.full_name());
    match connection.reach(operation, async { Ok(call.await) }).await? {
        Ok(()) => Ok(true),
        Err(error) if error::code(&error) == Some(EXISTS) => Ok(false),
        Err(error) => Err(error::from_driver(operation, error)),
    }
}

/// Creates an index, and its collection with it, unless it is there. Takes as long as it takes.
pub(crate) async fn create_index(
    connection: &Connection,
    operation: &'static str,
    collection: &CollectionSpec,
    index: &IndexSpec,
) -> Result<()> {
    let mut tries = 0;
    loop {
        let records = connection.collection(collection.name);
        let Err(error) = records.create_index(index.model()).await else { return Ok(()) };
        // Whoever looks in vain learns what went wrong in the first place.
        if let Ok(true) = is_there(connection, operation, collection, index).await {
            return Ok(());
        }
        tries += 1;
        let disturbed = error::code(&error).is_some_and(|code| BUSY_BUILDING.contains(&code));
        if !disturbed || tries == TRIES {
            return Err(error::from_driver(operation, error));
        }
        connection.pause(PAUSE).await;
    }
}
