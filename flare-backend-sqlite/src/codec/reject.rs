//! Takes rejects' records; gives rejects.

use flare_core::Result;
use flare_core::model::{ConsumerId, RecordKind, RecordName, Reject, RejectId};
use rusqlite::Row;

use super::consumer::unwritable;
use super::{Decoded, check_needs, damaged, read_id, read_time, unreadable_record};

/// What is read of a record; [`StoredReject::of`] takes it from these columns.
pub(crate) const COLUMNS: &str = "id, rejected, record, needs";

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredReject {
    id: Vec<u8>,
    rejected: i64,
    record: String,
    needs: Option<i64>,
}

impl StoredReject {
    /// Reads [`COLUMNS`].
    pub(crate) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { id: row.get(0)?, rejected: row.get(1)?, record: row.get(2)?, needs: row.get(3)? })
    }

    /// The reject of this consumer, or the error that names it.
    pub(crate) fn reject(&self, operation: &'static str, consumer: ConsumerId) -> Result<Reject> {
        self.read(consumer).map_err(|why| unreadable_record(operation, self.name(), why))
    }

    fn read(&self, consumer: ConsumerId) -> Decoded<Reject> {
        check_needs(self.needs)?;
        let id = RejectId::from_bytes(read_id(&self.id, "id")?);
        Reject::from_stored(id, consumer, read_time(self.rejected), &self.record)
            .map_err(|_| damaged("record"))
    }

    fn name(&self) -> RecordName {
        match read_id(&self.id, "id") {
            Ok(id) => RecordName::Reject(RejectId::from_bytes(id)),
            Err(_) => {
                RecordName::Unnamed { kind: RecordKind::Reject, shown: format!("{:02x?}", self.id) }
            }
        }
    }
}

/// A reject's record, without what has columns of its own.
pub(crate) fn record(operation: &'static str, reject: &Reject) -> Result<String> {
    reject.stored().map_err(|invalid| unwritable(operation, invalid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        let stored = |id: &[u8], record: &str, needs| StoredReject {
            id: id.to_vec(),
            rejected: 9,
            record: record.to_owned(),
            needs,
        };
        let consumer = ConsumerId::from_bytes([1; 16]);
        let sound = r#"{"message":"m-1","reason":"missing","detail":"is missing","body":"{}"}"#;
        let read = stored(&[7; 16], sound, None).reject("rejects", consumer).unwrap();
        assert_eq!((read.consumer, read.rejected_at.unix_nanos()), (consumer, 9));
        for (record, needs) in [("{", None), ("{}", None), (sound, Some(99))] {
            let error = stored(&[7; 16], record, needs).reject("rejects", consumer).unwrap_err();
            let unreadable = error.unreadable().unwrap();
            assert_eq!(unreadable.record, RecordName::Reject(RejectId::from_bytes([7; 16])));
            assert_eq!(unreadable.is_newer(), needs.is_some(), "{record}");
        }
        let nameless = stored(&[7], sound, None).reject("rejects", consumer).unwrap_err();
        assert_eq!(nameless.unreadable().unwrap().record.kind(), RecordKind::Reject);
    }
}
