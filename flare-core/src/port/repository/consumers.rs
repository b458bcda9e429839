//! Takes inputs that documents are pulled from; gives them back with how far each has come, and with the
//! messages that became no document.

use std::fmt;

use async_trait::async_trait;

use super::Replaced;
use crate::error::Result;
use crate::model::{
    Applied, Consumer, ConsumerId, ConsumerState, Epoch, Generation, Reject, RejectId, Timestamp,
};
use crate::port::{Listing, Page, Scan};

/// Keeps consumers, what their owners store of them, and their rejects.
///
/// # Contract
/// - **RC1** `insert_consumer` stores the consumer; what it returns is what is stored. Inserting the same id
///   again changes nothing and returns what is stored. All of it comes back exactly.
/// - **RC2** `replace_consumer` takes place only at the generation named and stores the next one; of any number
///   of concurrent replacements one succeeds, the others learn what is there. Id, resource and creation time
///   stay; all else is what was given. What its owner stored stays.
/// - **RC3** `list_consumers` gives all, oldest first (by id), with their total; `scan_consumers` gives all in id
///   order after the one named.
/// - **RC4** `remove_consumer` forgets the consumer with its state and its rejects; one that is not there is no
///   error. What is stored for it afterwards, or at the same time, is forgotten too. With a generation named it takes
///   place only at that one, in one step: else nothing changes. It tells whether the consumer is gone.
/// - **RC5** `store_consumer_state` takes place only if the consumer is there and no greater epoch has written
///   its state; it stores the epoch with it. `claim_consumer_state` takes place under the same condition, in one
///   step: it leaves the state as it is (an empty one, if none was stored), stores the epoch with it and gives it,
///   so that what a former owner wrote before is seen, and what it writes afterwards is fenced. Else it gives
///   nothing. `consumer_states` gives what was stored last, in any order, and nothing for those of which nothing
///   was.
/// - **RC6** `insert_rejects` stores each under its id, in place of what was there; of each consumer it keeps
///   the `most` that were rejected last. Those of a consumer that is not there are not kept.
/// - **RC7** `list_rejects` gives those of a consumer, the oldest rejection first (then by id), with their
///   total; `rejects` gives those named that there are.
/// - **RC8** `remove_rejects` forgets those named of a consumer, and no others; `expire_rejects` those of a
///   consumer that were rejected before the time named, at most `limit`, and says how many.
#[async_trait]
pub trait ConsumerStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a new consumer.
    async fn insert_consumer(&self, consumer: Consumer) -> Result<Consumer>;

    /// Reads a consumer.
    async fn consumer(&self, id: ConsumerId) -> Result<Option<Consumer>>;

    /// Reads one page of all consumers.
    async fn list_consumers(&self, page: Page) -> Result<Listing<Consumer>>;

    /// Reads all consumers after `after`.
    fn scan_consumers(&self, after: Option<ConsumerId>) -> Scan<'_, Consumer>;

    /// Replaces a consumer (settings, status) that is still at `generation`.
    async fn replace_consumer(
        &self,
        generation: Generation,
        consumer: Consumer,
    ) -> Result<Replaced<Consumer>>;

    /// Forgets a consumer, and all that was stored for it; if it is still at a generation, where one is named. Tells
    /// whether it is gone.
    async fn remove_consumer(&self, id: ConsumerId, at: Option<Generation>) -> Result<bool>;

    /// Stores what a consumer's owner knows of it.
    async fn store_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
        state: ConsumerState,
    ) -> Result<Applied>;

    /// Takes a consumer over: gives what its former owner stored last, and fences it. Nothing if the consumer is
    /// not there, or a greater epoch has it.
    async fn claim_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Result<Option<ConsumerState>>;

    /// Reads what owners stored, with the epochs they did so under.
    async fn consumer_states(
        &self,
        ids: Vec<ConsumerId>,
    ) -> Result<Vec<(ConsumerId, Epoch, ConsumerState)>>;

    /// Keeps messages that became no document, of each consumer the last `most`.
    async fn insert_rejects(&self, rejects: Vec<Reject>, most: usize) -> Result<()>;

    /// Reads one page of a consumer's rejects.
    async fn list_rejects(&self, consumer: ConsumerId, page: Page) -> Result<Listing<Reject>>;

    /// Reads rejects of a consumer by their ids.
    async fn rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<Vec<Reject>>;

    /// Forgets rejects of a consumer.
    async fn remove_rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<()>;

    /// Forgets rejects of a consumer that are older than `before`, at most `limit`; says how many.
    async fn expire_rejects(
        &self,
        consumer: ConsumerId,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64>;
}
