//! A row's record with the ids that its numbers stand for.

use flare_core::Result;
use flare_core::model::{
    DocumentKey, DocumentUrl, RecordKind, RecordName, ResourceId, Row, RowKey, SubscriptionId,
};
use tokio_postgres::Row as Record;
use uuid::Uuid;

use crate::codec::row::{RowPlace, StoredRow};
use crate::codec::{self, unreadable_record};

/// The columns that [`FoundRow::of`] reads, of a row `r`, its document `d`, the resource's number `i` and the
/// subscription's `s`.
macro_rules! columns {
    () => {
        "s.id, i.id, d.url, r.subscription, r.document, r.state, r.wanted, r.settled, r.due, r.since, \
         r.generation, r.epoch, r.given_up, r.attempted, r.attempts, r.first_failure, r.round, \
         r.not_before, r.demanded, r.claim, r.claim_until, r.claim_held, r.needs, r.dead"
    };
}
pub(super) use columns;

/// What those are joined by, after the row.
macro_rules! named {
    () => {
        " JOIN flare.documents d ON d.n = r.document JOIN flare.resource_ids i ON i.n = d.resource \
         JOIN flare.subscription_ids s ON s.n = r.subscription "
    };
}
pub(super) use named;

/// How many columns there are.
pub(super) const WIDTH: usize = 24;

/// A row's record.
pub(super) struct FoundRow {
    pub(super) subscription: SubscriptionId,
    resource: ResourceId,
    pub(super) url: String,
    pub(super) place: RowPlace,
    pub(super) stored: StoredRow,
}

impl FoundRow {
    pub(super) fn of(row: &Record) -> std::result::Result<Self, tokio_postgres::Error> {
        let (subscription, resource): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Self {
            subscription: SubscriptionId::from_bytes(subscription.into_bytes()),
            resource: ResourceId::from_bytes(resource.into_bytes()),
            url: row.try_get(2)?,
            place: RowPlace { subscription: row.try_get(3)?, document: row.try_get(4)? },
            stored: StoredRow::of(row, 5)?,
        })
    }

    /// The row, or the error that names it.
    pub(super) fn row(&self, operation: &'static str) -> Result<Row> {
        self.read(operation, StoredRow::row)
    }

    /// What this version knows of the row, whatever else it needs.
    pub(super) fn known(&self, operation: &'static str) -> Result<Row> {
        self.read(operation, StoredRow::known)
    }

    fn read(
        &self,
        operation: &'static str,
        read: impl FnOnce(&StoredRow, SubscriptionId, &DocumentKey) -> codec::Decoded<Row>,
    ) -> Result<Row> {
        let Ok(url) = DocumentUrl::parse(&self.url) else {
            let name = RecordName::Unnamed { kind: RecordKind::Row, shown: self.url.clone() };
            return Err(unreadable_record(operation, name, codec::damaged("url")));
        };
        let document = DocumentKey::new(self.resource, url);
        read(&self.stored, self.subscription, &document).map_err(|why| {
            let name = RecordName::Row(RowKey::new(self.subscription, document.url.clone()));
            unreadable_record(operation, name, why)
        })
    }
}
