//! Takes inputs that documents are pulled from; gives them back, with what their owners stored of them and with
//! their messages that became no document.
//!
//! Whatever is written for a consumer has its record locked first, and several records are locked in the order of
//! their ids: so what is written while a consumer is removed comes before the removal or does not take place, and
//! no two of these statements wait for each other in a circle.

mod records;
mod rejects;
mod states;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, Epoch, Generation, Reject, RejectId, Timestamp,
};
use flare_core::port::{ConsumerStore, Listing, Page, Replaced, Scan};

use super::PostgresRepository;

#[async_trait]
impl ConsumerStore for PostgresRepository {
    async fn insert_consumer(&self, consumer: Consumer) -> Result<Consumer> {
        self.database.attempts("insert_consumer", || self.insert_record(&consumer)).await
    }

    async fn consumer(&self, id: ConsumerId) -> Result<Option<Consumer>> {
        self.database.attempts("consumer", || self.read_consumer(id)).await
    }

    async fn list_consumers(&self, page: Page) -> Result<Listing<Consumer>> {
        self.database.attempts("list_consumers", || self.page_of_consumers(page)).await
    }

    fn scan_consumers(&self, after: Option<ConsumerId>) -> Scan<'_, Consumer> {
        self.scan_records(after)
    }

    async fn replace_consumer(
        &self,
        generation: Generation,
        consumer: Consumer,
    ) -> Result<Replaced<Consumer>> {
        let replace = || self.replace_record(generation, &consumer);
        self.database.attempts("replace_consumer", replace).await
    }

    async fn remove_consumer(&self, id: ConsumerId, at: Option<Generation>) -> Result<bool> {
        self.database.attempts("remove_consumer", || self.remove_record(id, at)).await
    }

    async fn store_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
        state: ConsumerState,
    ) -> Result<Applied> {
        self.store_state(epoch, id, &state).await
    }

    async fn claim_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Result<Option<ConsumerState>> {
        self.database.attempts("claim_consumer_state", || self.claim_state(epoch, id)).await
    }

    async fn consumer_states(
        &self,
        ids: Vec<ConsumerId>,
    ) -> Result<Vec<(ConsumerId, Epoch, ConsumerState)>> {
        self.database.attempts("consumer_states", || self.states_of(&ids)).await
    }

    async fn insert_rejects(&self, rejects: Vec<Reject>, most: usize) -> Result<()> {
        self.database.attempts("insert_rejects", || self.keep_rejects(&rejects, most)).await
    }

    async fn list_rejects(&self, consumer: ConsumerId, page: Page) -> Result<Listing<Reject>> {
        self.database.attempts("list_rejects", || self.page_of_rejects(consumer, page)).await
    }

    async fn rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<Vec<Reject>> {
        self.database.attempts("rejects", || self.find_rejects(consumer, &ids)).await
    }

    async fn remove_rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<()> {
        self.database.attempts("remove_rejects", || self.drop_rejects(consumer, &ids)).await
    }

    async fn expire_rejects(
        &self,
        consumer: ConsumerId,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let drop = || self.drop_old_rejects(consumer, before, limit);
        self.database.attempts("expire_rejects", drop).await
    }
}
