//! Takes a document's key; gives its record, found by the hash of its URL or, where it is known, by its number.

use flare_core::model::{DocumentKey, DocumentUrl, RecordName, ResourceId};
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use crate::codec;
use crate::codec::document::{COLUMNS, StoredDocument};
use crate::engine::{Tx, names};

/// Finds documents for a reader, one after the other. Remembers the resource of the last.
pub(crate) struct Finder<'a> {
    connection: &'a Connection,
    find: CachedStatement<'a>,
    last: Option<(ResourceId, Option<i64>)>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        let sql =
            format!("SELECT {COLUMNS} FROM documents d WHERE d.resource = ?1 AND d.hash = ?2");
        Ok(Self { connection, find: connection.prepare_cached(&sql)?, last: None })
    }

    /// The record of a document, or of what rows name so.
    pub(crate) fn find(&mut self, key: &DocumentKey) -> rusqlite::Result<Option<StoredDocument>> {
        let resource = match self.last {
            Some((id, n)) if id == key.resource => n,
            _ => names::resource(self.connection, key.resource)?,
        };
        self.last = Some((key.resource, resource));
        match resource {
            Some(resource) => self.find_in(resource, &key.url),
            None => Ok(None),
        }
    }

    fn find_in(
        &mut self,
        resource: i64,
        url: &DocumentUrl,
    ) -> rusqlite::Result<Option<StoredDocument>> {
        let mut found = self.find.query([resource, codec::hash(url)])?;
        // Others may have the same hash.
        while let Some(row) = found.next()? {
            if row.get_ref(1)?.as_str_or_null()? == Some(url.as_str()) {
                return StoredDocument::of(row).map(Some);
            }
        }
        Ok(None)
    }
}

/// Finds documents within the writer's transaction, which remembers their numbers.
pub(crate) struct NumberFinder<'a> {
    read: CachedStatement<'a>,
}

impl<'a> NumberFinder<'a> {
    pub(crate) fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        let sql = format!("SELECT {COLUMNS} FROM documents d WHERE d.n = ?1");
        Ok(Self { read: connection.prepare_cached(&sql)? })
    }

    /// The record of a document of the resource with this number, or of what rows name so.
    pub(crate) fn find(
        &mut self,
        tx: &mut Tx<'_>,
        resource: i64,
        url: &DocumentUrl,
    ) -> rusqlite::Result<Option<StoredDocument>> {
        match tx.document(resource, url)? {
            Some(n) => self.read.query_row([n], StoredDocument::of).optional(),
            None => Ok(None),
        }
    }
}

/// What errors call a document.
pub(crate) fn name_of(key: &DocumentKey) -> RecordName {
    RecordName::Document(key.clone())
}
