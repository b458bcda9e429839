//! Takes consumers' records; gives consumers, and what their owners stored of them.

use flare_core::Result;
use flare_core::model::{
    Consumer, ConsumerId, ConsumerState, Epoch, RecordName, ResourceId, WhyUnreadable,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::resource::internal;
use super::{Decoded, check_needs, damaged, read_epoch, read_generation, unreadable_record};

/// A record as it is, without what its owner stored.
#[derive(Debug)]
pub(crate) struct StoredConsumer {
    id: Uuid,
    resource: Uuid,
    generation: i64,
    record: String,
    needs: Option<i32>,
}

impl StoredConsumer {
    /// Reads `id, resource, generation, record, needs`.
    pub(crate) fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            resource: row.try_get(1)?,
            generation: row.try_get(2)?,
            record: row.try_get(3)?,
            needs: row.try_get(4)?,
        })
    }

    /// Its id, after which a scan goes on.
    pub(crate) fn id(&self) -> ConsumerId {
        ConsumerId::from_bytes(self.id.into_bytes())
    }

    /// The consumer, or the error that names it.
    pub(crate) fn consumer(&self, operation: &'static str) -> Result<Consumer> {
        let named = |why| unreadable_record(operation, RecordName::Consumer(self.id()), why);
        self.read().map_err(named)
    }

    fn read(&self) -> Decoded<Consumer> {
        check_needs(self.needs)?;
        let resource = ResourceId::from_bytes(self.resource.into_bytes());
        let generation = read_generation(self.generation)?;
        // What is wrong is not shown: a source's settings may hold secrets.
        Consumer::from_stored(self.id(), resource, generation, &self.record)
            .map_err(|_| damaged("record"))
    }
}

/// What an owner stored of its consumer, as it is.
#[derive(Debug)]
pub(crate) struct StoredConsumerState {
    id: Uuid,
    epoch: i64,
    state: String,
    needs: Option<i32>,
}

impl StoredConsumerState {
    /// Reads `id, epoch, state, needs` of a consumer that has a state.
    pub(crate) fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            epoch: row.try_get(1)?,
            state: row.try_get(2)?,
            needs: row.try_get(3)?,
        })
    }

    /// Whose state it is, under which epoch it was stored, and the state; or the error that names the consumer.
    pub(crate) fn state(
        &self,
        operation: &'static str,
    ) -> Result<(ConsumerId, Epoch, ConsumerState)> {
        let id = ConsumerId::from_bytes(self.id.into_bytes());
        let named =
            |why: WhyUnreadable| unreadable_record(operation, RecordName::Consumer(id), why);
        let (epoch, state) = self.read().map_err(named)?;
        Ok((id, epoch, state))
    }

    fn read(&self) -> Decoded<(Epoch, ConsumerState)> {
        check_needs(self.needs)?;
        let state = ConsumerState::from_stored(&self.state).map_err(|_| damaged("state"))?;
        Ok((read_epoch(self.epoch)?, state))
    }
}

/// A consumer's record, without id, resource and generation, which have columns of their own.
pub(crate) fn record(operation: &'static str, consumer: &Consumer) -> Result<String> {
    consumer.stored().map_err(|error| internal(operation, error))
}

/// What an owner stores, without the epoch, which has a column of its own.
pub(crate) fn state(operation: &'static str, state: &ConsumerState) -> Result<String> {
    state.stored().map_err(|error| internal(operation, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConsumerId = ConsumerId::from_bytes([7; 16]);

    fn stored() -> StoredConsumer {
        let record = r#"{"source":{"kind":"sqs","settings":{"queue":"users"}},
            "document":{"url":"http://api.example.com/users/{/id}"},"createdAt":1,"updatedAt":2}"#;
        StoredConsumer {
            id: Uuid::from_bytes([7; 16]),
            resource: Uuid::from_bytes([8; 16]),
            generation: 3,
            record: record.to_owned(),
            needs: None,
        }
    }

    #[test]
    fn a_consumer_that_cannot_be_read_is_named() {
        assert_eq!(stored().consumer("consumer").unwrap().id, ID);
        for (stored, why) in [
            (StoredConsumer { record: "{".to_owned(), ..stored() }, damaged("record")),
            (StoredConsumer { generation: -1, ..stored() }, damaged("generation")),
            (StoredConsumer { needs: Some(99), ..stored() }, WhyUnreadable::Newer { needs: 99 }),
        ] {
            let error = stored.consumer("consumer").unwrap_err();
            let unreadable = error.unreadable().unwrap();
            assert_eq!((&unreadable.record, &unreadable.why), (&RecordName::Consumer(ID), &why));
        }
    }

    #[test]
    fn a_state_that_cannot_be_read_names_its_consumer() {
        let stored = |epoch, state: &str| StoredConsumerState {
            id: Uuid::from_bytes([7; 16]),
            epoch,
            state: state.to_owned(),
            needs: None,
        };
        let empty = (ID, Epoch::new(4), ConsumerState::default());
        assert_eq!(stored(4, "{}").state("consumer_states").unwrap(), empty);
        for (stored, why) in
            [(stored(4, "{"), damaged("state")), (stored(-1, "{}"), damaged("epoch"))]
        {
            let error = stored.state("consumer_states").unwrap_err();
            let unreadable = error.unreadable().unwrap();
            assert_eq!((&unreadable.record, &unreadable.why), (&RecordName::Consumer(ID), &why));
        }
    }
}
