//! Takes records of what was done; gives entries.

use flare_core::Result;
use flare_core::model::{AuditEntry, AuditEntryId, RecordName};
use tokio_postgres::Row;
use uuid::Uuid;

use super::resource::internal;
use super::{Decoded, check_needs, damaged, read_time, unreadable_record};

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredAudit {
    id: Uuid,
    at: i64,
    subject: String,
    record: String,
    needs: Option<i32>,
}

impl StoredAudit {
    /// Reads `id, at, subject, record, needs`.
    pub(crate) fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            at: row.try_get(1)?,
            subject: row.try_get(2)?,
            record: row.try_get(3)?,
            needs: row.try_get(4)?,
        })
    }

    /// The entry, or the error that names it.
    pub(crate) fn entry(&self, operation: &'static str) -> Result<AuditEntry> {
        let named = |why| unreadable_record(operation, RecordName::Audit(self.id()), why);
        self.read().map_err(named)
    }

    fn read(&self) -> Decoded<AuditEntry> {
        check_needs(self.needs)?;
        let subject = self.subject.parse().map_err(|_| damaged("subject"))?;
        AuditEntry::from_stored(self.id(), read_time(self.at), subject, &self.record)
            .map_err(|_| damaged("record"))
    }

    fn id(&self) -> AuditEntryId {
        AuditEntryId::from_bytes(self.id.into_bytes())
    }
}

/// An entry's record, without id, time and subject, which have columns of their own.
pub(crate) fn record(operation: &'static str, entry: &AuditEntry) -> Result<String> {
    entry.stored().map_err(|error| internal(operation, error))
}
