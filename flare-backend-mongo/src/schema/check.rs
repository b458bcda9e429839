//! Takes a connection; gives leave to use an area, or says what to run first.

use flare_core::Result;

use super::{Area, SchemaState, build};
use crate::connection::Connection;

const OPERATION: &str = "connect";

/// Makes sure that an area can be used; creates what is missing first, if that is wished.
///
/// Refuses a database that is not set up, half set up, or set up by a newer Flare.
pub(crate) async fn ready(connection: &Connection, area: Area, create: bool) -> Result<()> {
    let migrations = area.migrations();
    let mut standing = SchemaState::load(connection, OPERATION, area, migrations).await?;
    let behind = !matches!(standing, SchemaState::Current | SchemaState::Newer(_));
    if create && behind {
        build::build(connection, area, migrations).await?;
        standing = SchemaState::load(connection, OPERATION, area, migrations).await?;
    }
    standing.refusal(connection, OPERATION, area, migrations).map_or(Ok(()), Err)
}
