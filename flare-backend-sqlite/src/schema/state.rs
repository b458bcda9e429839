//! Takes a file as it is found; gives how it stands to the migrations this Flare knows, and the refusal where
//! the two do not fit.

use flare_core::{Error, ErrorKind};
use rusqlite::Connection;

use super::{APPLICATION, Migration, newest};
use crate::error;
use crate::file::Place;

/// How far a file is, seen from this Flare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// There is nothing in it.
    Empty,
    /// It is a database of something else.
    Foreign(i32),
    /// There are newer migrations than this version.
    Older(i32),
    /// All migrations have run.
    Current,
    /// Somebody who knows more migrations has been here.
    Newer(i32),
}

impl SchemaState {
    /// Looks at the file.
    pub(crate) fn of(connection: &Connection, migrations: &[Migration]) -> rusqlite::Result<Self> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (application, version) = (pragma("application_id")?, pragma("user_version")?);
        let things: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let newest = newest(migrations);
        Ok(match (application, things) {
            (0 | APPLICATION, 0) => Self::Empty,
            (APPLICATION, _) if version > newest => Self::Newer(version),
            (APPLICATION, _) if version < newest => Self::Older(version),
            (APPLICATION, _) => Self::Current,
            (other, _) => Self::Foreign(other),
        })
    }

    /// The newest version that is complete.
    pub(crate) fn version(self, migrations: &[Migration]) -> i32 {
        match self {
            Self::Empty | Self::Foreign(_) => 0,
            Self::Older(version) | Self::Newer(version) => version,
            Self::Current => newest(migrations),
        }
    }

    /// Why the file cannot be used, and what to do about it.
    pub(crate) fn refusal(
        self,
        operation: &'static str,
        place: &Place,
        migrations: &[Migration],
    ) -> Option<Error> {
        let path = place.path().display();
        let detail = match self {
            Self::Empty | Self::Older(_) | Self::Current => return None,
            Self::Foreign(application) => format!(
                "{path} is a database of something else (application id {application}): name a file \
                 of Flare's own"
            ),
            Self::Newer(version) => format!(
                "{path} has schema version {version}, this Flare knows {} at most: update this node",
                newest(migrations)
            ),
        };
        Some(error::of(ErrorKind::Conflict, operation, detail).with_field("path"))
    }
}
