//! Takes an area's record in `flare_schema` and the migrations this Flare knows; gives how the two
//! stand to each other, and the refusal where they do not fit.

use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Document, doc};

use super::migration::{Migration, newest};
use super::{Area, SCHEMA};
use crate::BACKEND;
use crate::connection::Connection;
use crate::record::Record;

/// How far a database is, seen from this Flare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// Nobody has set it up.
    Absent,
    /// A migration from this version was begun, and has not ended.
    Begun { version: i64, to: i64 },
    /// There are newer migrations than this version.
    Older(i64),
    /// All migrations have run.
    Current,
    /// Somebody who knows more migrations has been here, or is at it.
    Newer(i64),
}

impl SchemaState {
    /// Looks the area's record up.
    pub(crate) async fn load(
        connection: &Connection,
        operation: &'static str,
        area: Area,
        migrations: &[Migration],
    ) -> Result<Self> {
        let schema = connection.collection(SCHEMA);
        let found = connection.run(operation, schema.find_one(doc! { "_id": area.name() })).await?;
        match found {
            None => Ok(Self::Absent),
            Some(found) => Self::of(operation, &found, newest(migrations)),
        }
    }

    fn of(operation: &'static str, record: &Document, newest: i32) -> Result<Self> {
        let record = Record::new(operation, record);
        let version = record.number("version")?;
        let running = record.inner_if_any("running")?;
        let to = running.map(|running| running.number("to")).transpose()?;
        // What leads to where it is already has ended.
        let to = to.filter(|to| *to > version);
        let (newest, furthest) = (i64::from(newest), to.unwrap_or(version));
        Ok(match to {
            _ if furthest > newest => Self::Newer(furthest),
            Some(to) => Self::Begun { version, to },
            None if version < newest => Self::Older(version),
            None => Self::Current,
        })
    }

    /// The newest version that is complete.
    pub(crate) fn version(self, migrations: &[Migration]) -> i64 {
        match self {
            Self::Absent => 0,
            Self::Begun { version, .. } | Self::Older(version) | Self::Newer(version) => version,
            Self::Current => i64::from(newest(migrations)),
        }
    }

    /// Why the area cannot be used as it stands, and what to do about it.
    pub(crate) fn refusal(
        self,
        connection: &Connection,
        operation: &'static str,
        area: Area,
        migrations: &[Migration],
    ) -> Option<Error> {
        let (name, database) = (area.name(), connection.database().name());
        let newest = newest(migrations);
        let (kind, detail) = match self {
            Self::Current => return None,
            Self::Absent => (
                ErrorKind::NotFound,
                format!(
                    "database {database} is not set up for Flare's {name}: run `flare setup \
                     {name}`, or connect with `create_missing`"
                ),
            ),
            Self::Begun { to, .. } => (
                ErrorKind::Conflict,
                format!(
                    "migration {to} of the {name} in database {database} was begun and not \
                     finished: run `flare setup {name}` to go on with it"
                ),
            ),
            Self::Older(version) => (
                ErrorKind::Conflict,
                format!(
                    "the {name} in database {database} has schema version {version}, this Flare \
                     needs {newest}: run `flare setup {name}`"
                ),
            ),
            Self::Newer(version) => (
                ErrorKind::Conflict,
                format!(
                    "the {name} in database {database} has schema version {version}, this Flare \
                     knows {newest} at most: update this node"
                ),
            ),
        };
        Some(Error::new(kind, operation).with_backend(BACKEND).with_detail(detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(record: Document) -> SchemaState {
        SchemaState::of("test", &record, 2).unwrap()
    }

    #[test]
    fn a_record_stands_where_its_version_and_its_running_migration_say() {
        assert_eq!(standing(doc! { "version": 2 }), SchemaState::Current);
        assert_eq!(standing(doc! { "version": 1_i64 }), SchemaState::Older(1));
        assert_eq!(standing(doc! { "version": 3 }), SchemaState::Newer(3));
        let begun = doc! { "version": 1, "running": { "to": 2 } };
        assert_eq!(standing(begun), SchemaState::Begun { version: 1, to: 2 });
        let elsewhere = doc! { "version": 2, "running": { "to": 3 } };
        assert_eq!(standing(elsewhere), SchemaState::Newer(3), "begun by somebody who knows more");
        let ended = doc! { "version": 2, "running": { "to": 2 } };
        assert_eq!(standing(ended), SchemaState::Current);
    }

    #[test]
    fn a_record_that_is_not_understood_is_not_taken_for_anything() {
        for record in [doc! {}, doc! { "version": "2" }, doc! { "version": 1, "running": true }] {
            let refused = SchemaState::of("test", &record, 2).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Corrupt);
        }
    }
}
