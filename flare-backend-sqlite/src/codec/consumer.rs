//! Takes consumers' records and what their owners stored; gives consumers and states.

use flare_core::model::{
    Consumer, ConsumerId, ConsumerState, Invalid, RecordKind, RecordName, ResourceId, Unreadable,
    WhyUnreadable,
};
use flare_core::{Error, ErrorKind, Result};
use rusqlite::Row;

use super::{
    Decoded, check_needs, damaged, read_generation, read_id, unreadable, unreadable_record,
};
use crate::error;

/// What is read of a record; [`StoredConsumer::of`] takes it from these columns.
pub(crate) const COLUMNS: &str = "id, resource, generation, record, needs";

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredConsumer {
    id: Vec<u8>,
    resource: Vec<u8>,
    generation: i64,
    record: String,
    needs: Option<i64>,
}

impl StoredConsumer {
    /// Reads [`COLUMNS`].
    pub(crate) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            resource: row.get(1)?,
            generation: row.get(2)?,
            record: row.get(3)?,
            needs: row.get(4)?,
        })
    }

    /// Its id, after which a scan goes on.
    pub(crate) fn id(&self) -> &[u8] {
        &self.id
    }

    /// The consumer, or the error that names it.
    pub(crate) fn consumer(&self, operation: &'static str) -> Result<Consumer> {
        self.read().map_err(|why| unreadable(operation, self.unreadable(why)))
    }

    fn read(&self) -> Decoded<Consumer> {
        check_needs(self.needs)?;
        let id = ConsumerId::from_bytes(read_id(&self.id, "id")?);
        let resource = ResourceId::from_bytes(read_id(&self.resource, "resource")?);
        let generation = read_generation(self.generation)?;
        Consumer::from_stored(id, resource, generation, &self.record).map_err(|_| damaged("record"))
    }

    fn unreadable(&self, why: WhyUnreadable) -> Unreadable {
        let name = match read_id(&self.id, "id") {
            Ok(id) => RecordName::Consumer(ConsumerId::from_bytes(id)),
            Err(_) => RecordName::Unnamed {
                kind: RecordKind::Consumer,
                shown: format!("{:02x?}", self.id),
            },
        };
        let resource = read_id(&self.resource, "resource").ok().map(ResourceId::from_bytes);
        Unreadable::new(name, why).of(resource)
    }
}

/// A consumer's record, without what has columns of its own.
pub(crate) fn record(operation: &'static str, consumer: &Consumer) -> Result<String> {
    consumer.stored().map_err(|invalid| unwritable(operation, invalid))
}

/// What an owner knows of its consumer, without the epoch, which has a column of its own.
pub(crate) fn state(operation: &'static str, state: &ConsumerState) -> Result<String> {
    state.stored().map_err(|invalid| unwritable(operation, invalid))
}

/// What an owner stored, or the error that names its consumer.
pub(crate) fn read_state(
    operation: &'static str,
    id: ConsumerId,
    text: &str,
    needs: Option<i64>,
) -> Result<ConsumerState> {
    let read = || -> Decoded<ConsumerState> {
        check_needs(needs)?;
        ConsumerState::from_stored(text).map_err(|_| damaged("state"))
    };
    read().map_err(|why| unreadable_record(operation, RecordName::Consumer(id), why))
}

/// A value that could not be written down: a fault of ours.
pub(super) fn unwritable(operation: &'static str, invalid: Invalid) -> Error {
    error::of(ErrorKind::Internal, operation, "it cannot be written as JSON").with_source(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> StoredConsumer {
        let record = r#"{"source":{"kind":"sqs","settings":{"queue":"users"}},
            "document":{"url":"http://api.example/users/{/id}"},"createdAt":1,"updatedAt":2}"#;
        StoredConsumer {
            id: vec![7; 16],
            resource: vec![8; 16],
            generation: 3,
            record: record.to_owned(),
            needs: None,
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let read = stored().consumer("consumer").unwrap();
        assert_eq!(
            (read.id.as_bytes(), read.resource.as_bytes(), read.generation.get()),
            (&[7; 16], &[8; 16], 3)
        );
        let name = RecordName::Consumer(ConsumerId::from_bytes([7; 16]));
        let unreadable = |stored: StoredConsumer| {
            stored.consumer("consumer").unwrap_err().unreadable().unwrap().clone()
        };
        let record = |record: &str| StoredConsumer { record: record.to_owned(), ..stored() };
        for (spoilt, column) in [
            (record("{"), "record"),
            (record("{}"), "record"),
            (StoredConsumer { generation: -1, ..stored() }, "generation"),
            (StoredConsumer { resource: vec![1], ..stored() }, "resource"),
        ] {
            let unreadable = unreadable(spoilt);
            assert_eq!((unreadable.record, unreadable.why), (name.clone(), damaged(column)));
        }
        let newer = unreadable(StoredConsumer { needs: Some(99), ..record("{") });
        assert!(newer.is_newer());
        assert_eq!(newer.resource, Some(ResourceId::from_bytes([8; 16])));
        let nameless = unreadable(StoredConsumer { id: vec![1], ..stored() });
        assert_eq!(nameless.record.kind(), RecordKind::Consumer);
    }

    #[test]
    fn a_state_that_cannot_be_read_names_its_consumer() {
        let id = ConsumerId::from_bytes([7; 16]);
        assert_eq!(read_state("x", id, "{}", None).unwrap(), ConsumerState::default());
        for (text, needs) in [("{", None), ("{}", Some(99)), ("[]x", None)] {
            let error = read_state("x", id, text, needs).unwrap_err();
            let unreadable = error.unreadable().unwrap();
            assert_eq!(unreadable.record, RecordName::Consumer(id), "{text}");
            assert_eq!(unreadable.is_newer(), needs.is_some(), "{text}");
        }
    }
}
