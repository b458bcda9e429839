//! Takes records of what was done; gives entries.

use flare_core::model::{AuditEntry, AuditEntryId, RecordKind, RecordName};
use flare_core::{ErrorKind, Result};
use rusqlite::Row;

use super::{Decoded, check_needs, damaged, read_id, read_time, unreadable_record};
use crate::error;

/// What is read of a record; [`StoredAudit::of`] takes it from these columns.
pub(crate) const COLUMNS: &str = "id, at, subject, record, needs";

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredAudit {
    id: Vec<u8>,
    at: i64,
    subject: String,
    record: String,
    needs: Option<i64>,
}

impl StoredAudit {
    /// Reads [`COLUMNS`].
    pub(crate) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            at: row.get(1)?,
            subject: row.get(2)?,
            record: row.get(3)?,
            needs: row.get(4)?,
        })
    }

    /// The entry, or the error that names it.
    pub(crate) fn entry(&self, operation: &'static str) -> Result<AuditEntry> {
        self.read().map_err(|why| unreadable_record(operation, self.name(), why))
    }

    fn read(&self) -> Decoded<AuditEntry> {
        check_needs(self.needs)?;
        let id = AuditEntryId::from_bytes(read_id(&self.id, "id")?);
        let subject = self.subject.parse().map_err(|_| damaged("subject"))?;
        AuditEntry::from_stored(id, read_time(self.at), subject, &self.record)
            .map_err(|_| damaged("record"))
    }

    fn name(&self) -> RecordName {
        match read_id(&self.id, "id") {
            Ok(id) => RecordName::Audit(AuditEntryId::from_bytes(id)),
            Err(_) => {
                RecordName::Unnamed { kind: RecordKind::Audit, shown: format!("{:02x?}", self.id) }
            }
        }
    }
}

/// An entry's record, without what has columns of its own.
pub(crate) fn record(operation: &'static str, entry: &AuditEntry) -> Result<String> {
    entry.stored().map_err(|source| {
        let error = error::of(ErrorKind::Internal, operation, "it cannot be written as JSON");
        error.with_source(source)
    })
}
