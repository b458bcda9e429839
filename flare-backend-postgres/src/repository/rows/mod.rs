//! Takes what spread, lanes' owners, pullers and operators want of rows; stores what the row's own functions
//! make of it, and gives what is pending, due and dead.

mod change;
mod claim;
mod dead;
mod found;
mod lanes;
mod read;
mod remove;
mod settle;
mod spread;
mod spread_all;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, DeadLetterId, DocumentKey, Epoch, LaneState, Row, RowKey, Spread, SubscriptionId,
    Timestamp, Version,
};
use flare_core::port::{
    ClaimRows, ClaimUpdate, EpochGrant, Listing, Page, Pending, PendingQuery, Replay, RowRemoval,
    RowStore, RowUpdate, Scan, SpreadAnswer, SpreadDocuments,
};

use super::{PostgresRepository, answers};
use crate::codec::{read_epoch, read_time};
use crate::error;

#[async_trait]
impl RowStore for PostgresRepository {
    async fn store_time(&self) -> Result<Timestamp> {
        const OPERATION: &str = "store_time";
        self.database
            .attempts(OPERATION, || async {
                let row = self.database.one(OPERATION, "SELECT flare.now()", &[]).await?;
                Ok(read_time(row.map_or(Ok(0), |row| row.try_get(0))?))
            })
            .await
    }

    async fn next_epoch(&self) -> Result<EpochGrant> {
        const OPERATION: &str = "next_epoch";
        const SQL: &str = "UPDATE flare.store SET epoch = epoch + 1 RETURNING epoch, flare.now()";
        self.database
            .attempts(OPERATION, || async {
                let row = self.database.one(OPERATION, SQL, &[]).await?;
                let corrupt = || {
                    let detail = "the record with the last epoch is missing: see `flare fixup`";
                    error::of(flare_core::ErrorKind::Corrupt, OPERATION, detail)
                };
                let row = row.ok_or_else(corrupt)?;
                let epoch = read_epoch(row.try_get(0)?).map_err(|_| corrupt())?;
                Ok(EpochGrant { epoch, at: read_time(row.try_get(1)?) })
            })
            .await
    }

    async fn spread_rows(&self, spreads: Vec<Spread>) -> Result<()> {
        self.spread_each(&spreads).await
    }

    async fn spread_documents(&self, request: SpreadDocuments) -> Result<SpreadAnswer> {
        self.database.attempts("spread_documents", || self.spread_to_all(&request)).await
    }

    async fn rows(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>> {
        self.database.attempts("rows", || self.rows_by_key(&keys)).await
    }

    async fn rows_of(
        &self,
        documents: Vec<DocumentKey>,
        after: Option<RowKey>,
        limit: usize,
    ) -> Result<Listing<Row>> {
        let read = || self.rows_of_documents(&documents, after.as_ref(), limit);
        self.database.attempts("rows_of", read).await
    }

    fn pending_rows(&self, query: PendingQuery) -> Scan<'_, Row> {
        self.scan_pending(query)
    }

    async fn count_pending(&self, subscription: Option<SubscriptionId>) -> Result<Pending> {
        self.database.attempts("count_pending", || self.count_of_pending(subscription)).await
    }

    fn pending_each(&self) -> Scan<'_, (SubscriptionId, Pending)> {
        self.scan_counts()
    }

    async fn apply_rows(&self, epoch: Epoch, updates: Vec<RowUpdate>) -> Vec<Result<Applied>> {
        let done = self.database.attempts("apply_rows", || self.apply(epoch, &updates)).await;
        answers(done, updates.len())
    }

    async fn claim_rows(&self, request: ClaimRows) -> Result<Vec<Row>> {
        self.database.attempts("claim_rows", || self.claim(&request)).await
    }

    async fn demand_rows(&self, subscription: SubscriptionId, max: usize) -> Result<u64> {
        self.database.attempts("demand_rows", || self.demand(subscription, max)).await
    }

    async fn apply_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>> {
        let done = self.database.attempts("apply_claims", || self.settle_claims(&updates)).await;
        answers(done, updates.len())
    }

    async fn expedite_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        self.database.attempts("expedite_rows", || self.expedite(subscription, limit)).await
    }

    async fn dead_letters(&self, subscription: SubscriptionId, page: Page) -> Result<Listing<Row>> {
        self.database.attempts("dead_letters", || self.page_of_dead(subscription, page)).await
    }

    async fn find_dead_letters(
        &self,
        subscription: SubscriptionId,
        ids: Vec<DeadLetterId>,
    ) -> Result<Vec<Option<Row>>> {
        self.database.attempts("find_dead_letters", || self.find_dead(subscription, &ids)).await
    }

    async fn replay_rows(&self, replays: Vec<Replay>) -> Vec<Result<bool>> {
        let done = self.database.attempts("replay_rows", || self.replay(&replays)).await;
        answers(done, replays.len())
    }

    async fn drop_dead_letters(&self, until: Timestamp, limit: usize) -> Result<u64> {
        self.database.attempts("drop_dead_letters", || self.drop_details(until, limit)).await
    }

    async fn remove_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        self.database.attempts("remove_rows", || self.remove_some_rows(subscription, limit)).await
    }

    async fn remove_settled_rows(&self, rows: Vec<(RowKey, Version)>) -> Vec<Result<RowRemoval>> {
        let removed = self.database.attempts("remove_settled_rows", || self.remove_settled(&rows));
        answers(removed.await, rows.len())
    }

    async fn store_lanes(&self, epoch: Epoch, lanes: Vec<LaneState>) -> Vec<Result<Applied>> {
        let done = self.database.attempts("store_lanes", || self.keep_lanes(epoch, &lanes)).await;
        answers(done, lanes.len())
    }

    async fn lanes(&self, subscription: SubscriptionId) -> Result<Listing<LaneState>> {
        self.database.attempts("lanes", || self.lanes_of(subscription)).await
    }

    fn scan_lanes(&self) -> Scan<'_, LaneState> {
        self.scan_lane_states()
    }
}
