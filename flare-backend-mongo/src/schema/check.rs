//! Takes a connection; gives leave to use an area, or says what to run first.

use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::doc;

use super::{Area, SCHEMA, build};
use crate::BACKEND;
use crate::connection::Connection;
use crate::record::Record;

/// Makes sure that an area can be used; creates what is missing first, if that is wished.
pub(crate) async fn ready(connection: &Connection, area: Area, create: bool) -> Result<()> {
    match check(connection, area).await {
        Err(error) if create && error.kind() == ErrorKind::NotFound => {
            build(connection, area).await?;
            check(connection, area).await
        }
        other => other,
    }
}

/// Refuses a database that is not set up, half set up, or set up by a newer Flare.
async fn check(connection: &Connection, area: Area) -> Result<()> {
    const OPERATION: &str = "connect";
    let schema = connection.collection(SCHEMA);
    let found = connection.run(OPERATION, schema.find_one(doc! { "_id": area.name() })).await?;
    let (name, needed) = (area.name(), area.version());
    let database = connection.database().name();
    let refuse = |kind: ErrorKind, detail: String| {
        Err(Error::new(kind, OPERATION).backend(BACKEND).detail(detail))
    };
    let Some(found) = found else {
        let detail = format!(
            "database {database} is not set up for Flare's {name}: run `flare setup {name}`, or \
             connect with `create_missing`"
        );
        return refuse(ErrorKind::NotFound, detail);
    };
    let refused = |detail: String| refuse(ErrorKind::Conflict, detail);
    let record = Record::new(OPERATION, &found);
    if let Some(running) = record.inner_if_any("running")? {
        let to = running.number("to")?;
        return refused(format!(
            "migration {to} of the {name} in database {database} was begun and not finished: run \
             `flare setup {name}` to go on with it"
        ));
    }
    match record.number("version")? {
        version if version == i64::from(needed) => Ok(()),
        version if version < i64::from(needed) => refused(format!(
            "the {name} in database {database} has schema version {version}, this Flare needs \
             {needed}: run `flare setup {name}`"
        )),
        version => refused(format!(
            "the {name} in database {database} has schema version {version}, this Flare knows \
             {needed} at most: update this node"
        )),
    }
}
