//! Takes spreads, outcomes, claims and replays; gives what is pending, due, dead. What becomes of a row is
//! said by the model's own functions, within the writer's transaction.

mod change;
mod claim;
mod dead;
mod durability;
mod lanes;
mod place;
mod read;
mod remove;
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

use super::SqliteRepository;
use super::documents::answers;
use crate::codec::read_epoch;
use crate::engine::Effort;

#[async_trait]
impl RowStore for SqliteRepository {
    async fn store_time(&self) -> Result<Timestamp> {
        self.engine.read("store_time", |reader| Ok(reader.now()?)).await
    }

    async fn next_epoch(&self) -> Result<EpochGrant> {
        const OPERATION: &str = "next_epoch";
        let draw = |tx: &mut crate::engine::Tx<'_>| {
            let mut next = tx.sql("UPDATE store SET epoch = epoch + 1 RETURNING epoch")?;
            let epoch: i64 = next.query_row([], |row| row.get(0))?;
            let epoch = read_epoch(epoch).map_err(|_| {
                let detail = "the epoch is not understood";
                crate::error::of(flare_core::ErrorKind::Corrupt, OPERATION, detail)
            })?;
            Ok(EpochGrant { epoch, at: tx.now })
        };
        self.engine.write(Effort::durable(OPERATION).urgent(), draw).await
    }

    async fn spread_rows(&self, spreads: Vec<Spread>) -> Result<()> {
        let effort = Effort::durable("spread_rows").of(spreads.len());
        self.engine.write(effort, move |tx| spread::spread(tx, &spreads)).await
    }

    async fn spread_documents(&self, request: SpreadDocuments) -> Result<SpreadAnswer> {
        // How many it tells is found out on the way: most have few.
        let effort = Effort::durable("spread_documents").of(request.documents.len());
        self.engine.write(effort, move |tx| spread_all::spread(tx, &request)).await
    }

    async fn rows(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>> {
        self.engine.read("rows", move |reader| read::by_key(reader, &keys)).await
    }

    async fn rows_of(
        &self,
        documents: Vec<DocumentKey>,
        after: Option<RowKey>,
        limit: usize,
    ) -> Result<Listing<Row>> {
        let read = move |reader: &crate::engine::Reader<'_>| {
            read::of_documents(reader, &documents, after.as_ref(), limit)
        };
        self.engine.read("rows_of", read).await
    }

    fn pending_rows(&self, query: PendingQuery) -> Scan<'_, Row> {
        self.scan_pending(query)
    }

    async fn count_pending(&self, subscription: Option<SubscriptionId>) -> Result<Pending> {
        let count = move |reader: &crate::engine::Reader<'_>| read::count(reader, subscription);
        self.engine.read("count_pending", count).await
    }

    fn pending_each(&self) -> Scan<'_, (SubscriptionId, Pending)> {
        self.scan_counts()
    }

    async fn apply_rows(&self, epoch: Epoch, updates: Vec<RowUpdate>) -> Vec<Result<Applied>> {
        let items = updates.len();
        let effort = if updates.iter().all(|update| durability::is_made_again(&update.effect)) {
            Effort::repeated("apply_rows")
        } else {
            Effort::durable("apply_rows")
        };
        let effort = effort.of(items);
        let done = self.engine.write(effort, move |tx| change::apply(tx, epoch, &updates)).await;
        answers(done, items)
    }

    async fn claim_rows(&self, request: ClaimRows) -> Result<Vec<Row>> {
        let effort = Effort::durable("claim_rows").of(request.max.min(1_000));
        self.engine.write(effort, move |tx| claim::claim(tx, &request)).await
    }

    async fn demand_rows(&self, subscription: SubscriptionId, max: usize) -> Result<u64> {
        let effort = Effort::durable("demand_rows").of(max.min(1_000));
        self.engine.write(effort, move |tx| claim::demand(tx, subscription, max)).await
    }

    async fn apply_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>> {
        let items = updates.len();
        let effort = Effort::durable("apply_claims").of(items);
        let done = self.engine.write(effort, move |tx| change::apply_claims(tx, &updates)).await;
        answers(done, items)
    }

    async fn expedite_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        let effort = Effort::durable("expedite_rows").of(limit.min(1_000));
        self.engine.write(effort, move |tx| claim::expedite(tx, subscription, limit)).await
    }

    async fn dead_letters(&self, subscription: SubscriptionId, page: Page) -> Result<Listing<Row>> {
        let list = move |reader: &crate::engine::Reader<'_>| dead::list(reader, subscription, page);
        self.engine.read("dead_letters", list).await
    }

    async fn find_dead_letters(
        &self,
        subscription: SubscriptionId,
        ids: Vec<DeadLetterId>,
    ) -> Result<Vec<Option<Row>>> {
        let find = move |reader: &crate::engine::Reader<'_>| dead::find(reader, subscription, &ids);
        self.engine.read("find_dead_letters", find).await
    }

    async fn replay_rows(&self, replays: Vec<Replay>) -> Vec<Result<bool>> {
        let items = replays.len();
        let effort = Effort::durable("replay_rows").of(items);
        let done = self.engine.write(effort, move |tx| change::replay(tx, &replays)).await;
        answers(done, items)
    }

    async fn drop_dead_letters(&self, until: Timestamp, limit: usize) -> Result<u64> {
        let effort = Effort::durable("drop_dead_letters").of(limit.min(1_000));
        self.engine.write(effort, move |tx| dead::drop_details(tx, until, limit)).await
    }

    async fn remove_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        let effort = Effort::durable("remove_rows").of(limit.min(1_000));
        self.engine.write(effort, move |tx| remove::some(tx, subscription, limit)).await
    }

    async fn remove_settled_rows(&self, rows: Vec<(RowKey, Version)>) -> Vec<Result<RowRemoval>> {
        let items = rows.len();
        let effort = Effort::durable("remove_settled_rows").of(items);
        let done = self.engine.write(effort, move |tx| remove::settled(tx, &rows)).await;
        answers(done, items)
    }

    async fn store_lanes(&self, epoch: Epoch, lanes: Vec<LaneState>) -> Vec<Result<Applied>> {
        let items = lanes.len();
        let effort = Effort::durable("store_lanes").of(items);
        let done = self.engine.write(effort, move |tx| lanes::store(tx, epoch, &lanes)).await;
        answers(done, items)
    }

    async fn lanes(&self, subscription: SubscriptionId) -> Result<Listing<LaneState>> {
        self.engine.read("lanes", move |reader| lanes::of(reader, subscription)).await
    }

    fn scan_lanes(&self) -> Scan<'_, LaneState> {
        self.scan_lane_states()
    }
}
