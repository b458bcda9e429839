//! Takes what consumers' owners know of them; keeps it, fenced, in the consumers' records.

use flare_core::Result;
use flare_core::model::{Applied, ConsumerId, ConsumerState, Epoch, RecordName};
use uuid::Uuid;

use super::super::PostgresRepository;
use crate::codec::consumer::{StoredConsumerState, state};
use crate::codec::{count, id as uuid};
use crate::connection::Value;
use crate::fault::Worked;

impl PostgresRepository {
    /// Stores a state under an epoch, unless a greater one has.
    pub(super) async fn store_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
        given: &ConsumerState,
    ) -> Result<Applied> {
        const OPERATION: &str = "store_consumer_state";
        const SQL: &str = "WITH there AS (SELECT id, epoch FROM flare.consumers WHERE id = $1 \
                 FOR NO KEY UPDATE), \
             done AS (UPDATE flare.consumers c SET epoch = $2, state = $3 FROM there t \
                 WHERE c.id = t.id AND (t.epoch IS NULL OR t.epoch <= $2) RETURNING 1) \
             SELECT epoch, EXISTS (SELECT 1 FROM done) FROM there";
        let (number, text) = (uuid(id.as_bytes()), state(OPERATION, given)?);
        let values: [&dyn Value; 3] = [&number, &count(epoch.get()), &text];
        self.fenced(OPERATION, &RecordName::Consumer(id), SQL, &values).await
    }

    /// Has a state stand under an epoch, unless a greater one has it, and gives it.
    pub(super) async fn claim_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Worked<Option<ConsumerState>> {
        const OPERATION: &str = "claim_consumer_state";
        // Where none was stored yet, an empty one is.
        const SQL: &str = "UPDATE flare.consumers SET epoch = $2, state = coalesce(state, $3) \
             WHERE id = $1 AND (epoch IS NULL OR epoch <= $2) RETURNING id, epoch, state, needs";
        let (number, empty) = (uuid(id.as_bytes()), state(OPERATION, &ConsumerState::default())?);
        let values: [&dyn Value; 3] = [&number, &count(epoch.get()), &empty];
        let claimed = self.database.one(OPERATION, SQL, &values).await?;
        let claimed = claimed.as_ref().map(StoredConsumerState::of).transpose()?;
        let claimed = claimed.map(|claimed| claimed.state(OPERATION)).transpose()?;
        Ok(claimed.map(|(.., state)| state))
    }

    /// What was stored of these last.
    pub(super) async fn states_of(
        &self,
        ids: &[ConsumerId],
    ) -> Worked<Vec<(ConsumerId, Epoch, ConsumerState)>> {
        const OPERATION: &str = "consumer_states";
        const SQL: &str = "SELECT id, epoch, state, needs FROM flare.consumers \
             WHERE id = ANY($1) AND epoch IS NOT NULL AND state IS NOT NULL";
        let asked: Vec<Uuid> = ids.iter().map(|id| uuid(id.as_bytes())).collect();
        let mut states = Vec::new();
        for row in &self.database.all(OPERATION, SQL, &[&asked]).await? {
            states.push(StoredConsumerState::of(row)?.state(OPERATION)?);
        }
        Ok(states)
    }
}
