//! Takes a row's key; gives where its record is. A key names no resource: that follows from the subscription.

use flare_core::model::{DocumentKey, DocumentUrl, ResourceId, RowKey, SubscriptionId};
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use crate::codec::row::{COLUMNS, RowPlace, StoredRow};
use crate::engine::Tx;
use crate::engine::names::{self, Subscriber};

/// A row's record, where it is and which document it is of.
pub(super) struct Found {
    pub(super) place: RowPlace,
    pub(super) document: DocumentKey,
    pub(super) stored: StoredRow,
}

/// Reads rows' records, one after the other.
pub(super) struct RowFinder<'a> {
    connection: &'a Connection,
    read: CachedStatement<'a>,
    /// The resource that was looked up last.
    last: Option<(i64, ResourceId)>,
}

impl<'a> RowFinder<'a> {
    pub(super) fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        let sql =
            format!("SELECT {COLUMNS} FROM rows r WHERE r.subscription = ?1 AND r.document = ?2");
        Ok(Self { connection, read: connection.prepare_cached(&sql)?, last: None })
    }

    /// The record at a place, if there is one.
    pub(super) fn at(&mut self, place: RowPlace) -> rusqlite::Result<Option<StoredRow>> {
        let RowPlace { subscription, document } = place;
        self.read.query_row([subscription, document], |row| StoredRow::of(row, 0)).optional()
    }

    /// The record at a place, with the key of its document.
    fn found(
        &mut self,
        place: RowPlace,
        resource: i64,
        url: &DocumentUrl,
    ) -> rusqlite::Result<Option<Found>> {
        let Some(stored) = self.at(place)? else { return Ok(None) };
        let document = DocumentKey::new(self.resource(resource)?, url.clone());
        Ok(Some(Found { place, document, stored }))
    }

    /// The row of a subscription for the document at `url`, within the writer's transaction.
    pub(super) fn find(
        &mut self,
        tx: &mut Tx<'_>,
        id: SubscriptionId,
        url: &DocumentUrl,
    ) -> rusqlite::Result<Option<Found>> {
        for (place, resource) in places(tx, id, url)? {
            if let Some(found) = self.found(place, resource, url)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn resource(&mut self, n: i64) -> rusqlite::Result<ResourceId> {
        if let Some((_, id)) = self.last.filter(|(last, _)| *last == n) {
            return Ok(id);
        }
        let mut find =
            self.connection.prepare_cached("SELECT id FROM resource_ids WHERE n = ?1")?;
        let id = find.query_row([n], |row| row.get(0)).map(ResourceId::from_bytes)?;
        self.last = Some((n, id));
        Ok(id)
    }
}

/// Where the row of a subscription for the document at `url` may be, with the resource of each: mostly one
/// place, as a subscription is of one resource.
pub(super) fn places(
    tx: &mut Tx<'_>,
    id: SubscriptionId,
    url: &DocumentUrl,
) -> rusqlite::Result<Vec<(RowPlace, i64)>> {
    let Some(Subscriber { n: subscription, resources }) = tx.subscriber(id)?.cloned() else {
        return Ok(Vec::new());
    };
    let mut places = Vec::with_capacity(resources.len());
    for resource in resources {
        if let Some(document) = tx.document(resource, url)? {
            places.push((RowPlace { subscription, document }, resource));
        }
    }
    Ok(places)
}

/// Finds rows for a reader, by their keys; remembers the subscription of the last.
pub(super) struct KeyFinder<'a> {
    rows: RowFinder<'a>,
    last: Option<(SubscriptionId, Option<Subscriber>)>,
}

impl<'a> KeyFinder<'a> {
    pub(super) fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self { rows: RowFinder::new(connection)?, last: None })
    }

    pub(super) fn find(&mut self, key: &RowKey) -> rusqlite::Result<Option<Found>> {
        let connection = self.rows.connection;
        if self.last.as_ref().is_none_or(|(id, _)| *id != key.subscription) {
            let of = names::subscriber(connection, key.subscription)?;
            self.last = Some((key.subscription, of));
        }
        let Some((_, Some(of))) = &self.last else { return Ok(None) };
        for resource in &of.resources {
            let document = names::document(connection, *resource, &key.url)?;
            let Some(document) = document else { continue };
            let place = RowPlace { subscription: of.n, document };
            if let Some(found) = self.rows.found(place, *resource, &key.url)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
