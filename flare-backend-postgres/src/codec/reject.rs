//! Takes records of messages that became no document; gives rejects.

use flare_core::Result;
use flare_core::model::{ConsumerId, RecordName, Reject, RejectId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::resource::internal;
use super::{Decoded, check_needs, damaged, read_time, unreadable_record};

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredReject {
    consumer: Uuid,
    id: Uuid,
    rejected: i64,
    record: String,
    needs: Option<i32>,
}

impl StoredReject {
    /// Reads `consumer, id, rejected, record, needs`.
    pub(crate) fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            consumer: row.try_get(0)?,
            id: row.try_get(1)?,
            rejected: row.try_get(2)?,
            record: row.try_get(3)?,
            needs: row.try_get(4)?,
        })
    }

    /// The reject, or the error that names it.
    pub(crate) fn reject(&self, operation: &'static str) -> Result<Reject> {
        let named = |why| unreadable_record(operation, RecordName::Reject(self.id()), why);
        self.read().map_err(named)
    }

    fn read(&self) -> Decoded<Reject> {
        check_needs(self.needs)?;
        let consumer = ConsumerId::from_bytes(self.consumer.into_bytes());
        // What is wrong is not shown: it may be a part of the message.
        Reject::from_stored(self.id(), consumer, read_time(self.rejected), &self.record)
            .map_err(|_| damaged("record"))
    }

    fn id(&self) -> RejectId {
        RejectId::from_bytes(self.id.into_bytes())
    }
}

/// A reject's record, without id, consumer and time, which have columns of their own. Its message may have a zero in
/// it, which the server takes in no text: in JSON it is written in letters.
pub(crate) fn record(operation: &'static str, reject: &Reject) -> Result<String> {
    reject.stored().map_err(|error| internal(operation, error))
}
