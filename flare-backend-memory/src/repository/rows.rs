//! Takes spreads, outcomes, claims and replays; gives each to the table of its subscription.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, DeadLetterId, DocumentKey, DocumentUrl, Epoch, LaneId, LaneState, RecordName, Row,
    RowKey, Spread, SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    ClaimRows, ClaimUpdate, EpochGrant, Listing, Page, Pending, PendingQuery, Replay, RowRemoval,
    RowStore, RowUpdate, Scan, SpreadAnswer, SpreadDocuments,
};
use futures::StreamExt;
use futures::stream;

use super::MemoryRepository;
use super::budget::ROW_BYTES;
use super::row_table::RowTable;
use super::spoilt::at_most;
use crate::{lock, read, write};

#[derive(Debug, Default)]
pub(super) struct Rows {
    epochs: AtomicU64,
    // A table is made and removed under the outer lock's write side, so whoever works on one
    // under the read side works on the one that counts.
    tables: RwLock<BTreeMap<SubscriptionId, Mutex<RowTable>>>,
    /// Derived: who has a row of which document. Changed while the row's table is locked.
    owners: Mutex<HashMap<DocumentUrl, BTreeSet<SubscriptionId>>>,
}

impl Rows {
    /// Works on a subscription's table, if it has one.
    fn with<R>(&self, id: SubscriptionId, work: impl FnOnce(&mut RowTable) -> R) -> Option<R> {
        let tables = read(&self.tables);
        tables.get(&id).map(|table| work(&mut lock(table)))
    }

    /// Works on a subscription's table, making one if need be.
    fn with_new<R>(&self, id: SubscriptionId, work: impl Fn(&mut RowTable) -> R) -> R {
        if let Some(answer) = self.with(id, &work) {
            return answer;
        }
        let mut tables = write(&self.tables);
        let table = tables.entry(id).or_insert_with(|| Mutex::new(RowTable::new(id)));
        work(&mut lock(table))
    }

    fn add_owner(&self, id: SubscriptionId, url: &DocumentUrl) {
        lock(&self.owners).entry(url.clone()).or_default().insert(id);
    }

    fn remove_owner(&self, id: SubscriptionId, url: &DocumentUrl) {
        let mut owners = lock(&self.owners);
        if let Some(its) = owners.get_mut(url) {
            its.remove(&id);
            if its.is_empty() {
                owners.remove(url);
            }
        }
    }

    /// Who has a row of a document, after one of them.
    fn owners(&self, url: &DocumentUrl, after: Option<SubscriptionId>) -> Vec<SubscriptionId> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let owners = lock(&self.owners);
        let its = owners.get(url).map(|its| its.range((start, Bound::Unbounded)).copied());
        its.into_iter().flatten().collect()
    }

    /// Drops a table that holds nothing any more.
    fn tidy(&self, id: SubscriptionId) {
        let mut tables = write(&self.tables);
        if tables.get(&id).is_some_and(|table| lock(table).is_empty()) {
            tables.remove(&id);
        }
    }

    pub(super) fn forget_lanes(&self, id: SubscriptionId) {
        self.with(id, |table| table.lanes.clear());
        self.tidy(id);
    }
}

#[async_trait]
impl RowStore for MemoryRepository {
    async fn store_time(&self) -> Result<Timestamp> {
        Ok(self.time.now())
    }

    async fn next_epoch(&self) -> Result<EpochGrant> {
        let epoch = Epoch::new(self.rows.epochs.fetch_add(1, Ordering::SeqCst) + 1);
        Ok(EpochGrant { epoch, at: self.time.now() })
    }

    async fn spread_rows(&self, spreads: Vec<Spread>) -> Result<()> {
        self.write_spreads(&spreads);
        Ok(())
    }

    async fn spread_documents(&self, request: SpreadDocuments) -> Result<SpreadAnswer> {
        self.spread_to_all(&request)
    }

    async fn rows(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>> {
        let get = |key: RowKey| {
            let found = self.rows.with(key.subscription, |table| table.get(&key.url)).flatten();
            found.map(|found| self.readable_row("rows", found)).transpose()
        };
        keys.into_iter().map(get).collect()
    }

    async fn rows_of(
        &self,
        documents: Vec<DocumentKey>,
        after: Option<RowKey>,
        limit: usize,
    ) -> Result<Listing<Row>> {
        let documents: BTreeSet<DocumentKey> = documents.into_iter().collect();
        let urls: BTreeSet<&DocumentUrl> = documents.iter().map(|document| &document.url).collect();
        let mut rows = Vec::new();
        for url in urls {
            let after = match &after {
                Some(after) if *url < after.url => continue,
                Some(after) if *url == after.url => Some(after.subscription),
                _ => None,
            };
            for id in self.rows.owners(url, after) {
                let row = self.rows.with(id, |table| table.get(url)).flatten();
                rows.extend(row.filter(|row| documents.contains(&row.document)));
            }
            if rows.len() >= limit {
                break;
            }
        }
        rows.truncate(limit);
        let total = rows.len() as u64;
        let read = |row| self.readable_row("rows_of", row);
        Listing::of_read(rows.into_iter().map(read), total)
    }

    fn pending_rows(&self, query: PendingQuery) -> Scan<'_, Row> {
        let limit = query.limit;
        let mut query = query;
        if self.spoilt.any() {
            // Those that cannot be read take no place.
            query.limit = usize::MAX;
        }
        let rows = self.rows.with(query.subscription, |table| table.pending(&query));
        let read = |row| self.readable_row("pending_rows", row);
        let rows = rows.unwrap_or_default().into_iter().map(read).collect();
        stream::iter(at_most(limit, rows)).boxed()
    }

    async fn count_pending(&self, subscription: Option<SubscriptionId>) -> Result<Pending> {
        if let Some(id) = subscription {
            return Ok(self.rows.with(id, |table| table.count_pending()).unwrap_or_default());
        }
        let tables = read(&self.rows.tables);
        let counts = tables.values().map(|table| lock(table).count_pending());
        Ok(counts.fold(Pending::default(), |sum, one| {
            Pending::new(
                sum.count + one.count,
                earliest(sum.oldest_since, one.oldest_since),
                earliest(sum.next_due, one.next_due),
            )
        }))
    }

    fn pending_each(&self) -> Scan<'_, (SubscriptionId, Pending)> {
        let tables = read(&self.rows.tables);
        let counts = tables.iter().map(|(id, table)| (*id, lock(table).count_pending()));
        let some: Vec<_> = counts.filter(|(_, pending)| pending.count > 0).map(Ok).collect();
        stream::iter(some).boxed()
    }

    async fn apply_rows(&self, epoch: Epoch, updates: Vec<RowUpdate>) -> Vec<Result<Applied>> {
        let apply = |RowUpdate { key, round, effect }| {
            let applied = self.change(&key, |row| row.apply(epoch, round, effect));
            Ok(applied.unwrap_or(Applied::Missing))
        };
        updates.into_iter().map(apply).collect()
    }

    async fn claim_rows(&self, request: ClaimRows) -> Result<Vec<Row>> {
        let now = self.time.now();
        let claimed = self.rows.with(request.subscription, |table| {
            let urls = self.claimable(table, now, request.max);
            let mut rows = Vec::with_capacity(urls.len());
            for url in urls {
                rows.extend(table.change(&url, |row| {
                    row.claim(request.claim, now + request.holds_for);
                    row.clone()
                }));
            }
            rows
        });
        Ok(claimed.unwrap_or_default())
    }

    async fn demand_rows(&self, subscription: SubscriptionId, max: usize) -> Result<u64> {
        let now = self.time.now();
        let demanded = self.rows.with(subscription, |table| {
            let urls = self.claimable(table, now, max);
            urls.iter().filter(|url| table.change(url, |row| row.demand(now)) == Some(true)).count()
        });
        Ok(demanded.unwrap_or_default() as u64)
    }

    async fn apply_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>> {
        let now = self.time.now();
        let apply = |ClaimUpdate { key, claim, round, effect }| {
            let applied = self.change(&key, |row| row.apply_claimed(claim, round, effect, now));
            Ok(applied.unwrap_or(Applied::Missing))
        };
        updates.into_iter().map(apply).collect()
    }

    async fn expedite_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        let now = self.time.now();
        let expedited = self.rows.with(subscription, |table| {
            let later = table
                .due_after(now)
                .filter(|url| table.get(url).is_some_and(|mut row| row.expedite(now)));
            let urls: Vec<DocumentUrl> = later.take(limit).cloned().collect();
            for url in &urls {
                table.change(url, |row| row.expedite(now));
            }
            urls.len() as u64
        });
        Ok(expedited.unwrap_or_default())
    }

    async fn dead_letters(&self, subscription: SubscriptionId, page: Page) -> Result<Listing<Row>> {
        let listing = self.rows.with(subscription, |table| {
            let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
            let rows = table.dead().skip(offset).take(page.limit as usize).collect();
            Listing::new(rows, table.count_dead() as u64)
        });
        let listing = listing.unwrap_or_else(|| Listing::new(Vec::new(), 0));
        let read = |row| self.readable_row("dead_letters", row);
        Listing::of_read(listing.items.into_iter().map(read), listing.total)
    }

    async fn find_dead_letters(
        &self,
        subscription: SubscriptionId,
        ids: Vec<DeadLetterId>,
    ) -> Result<Vec<Option<Row>>> {
        let found = self.rows.with(subscription, |table| {
            let by_id = table.find_dead(&ids.iter().copied().collect());
            ids.iter().map(|id| by_id.get(id).cloned()).collect()
        });
        let found: Vec<Option<Row>> = found.unwrap_or_else(|| vec![None; ids.len()]);
        let read = |row| self.readable_row("find_dead_letters", row);
        found.into_iter().map(|row| row.map(read).transpose()).collect()
    }

    async fn replay_rows(&self, replays: Vec<Replay>) -> Vec<Result<bool>> {
        let now = self.time.now();
        let replay = |Replay { key, version }| {
            Ok(self.change(&key, |row| row.replay(version, now)).unwrap_or(false))
        };
        replays.into_iter().map(replay).collect()
    }

    async fn drop_dead_letters(&self, until: Timestamp, limit: usize) -> Result<u64> {
        let tables = read(&self.rows.tables);
        let mut left = limit;
        for table in tables.values() {
            let mut table = lock(table);
            let urls: Vec<DocumentUrl> = table.died_by(until).take(left).cloned().collect();
            for url in &urls {
                table.change(url, |row| row.dead = None);
            }
            left -= urls.len();
        }
        Ok((limit - left) as u64)
    }

    async fn remove_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64> {
        let removed = self.rows.with(subscription, |table| {
            let urls: Vec<DocumentUrl> = table.urls().take(limit).cloned().collect();
            for url in &urls {
                table.remove(url);
                self.rows.remove_owner(subscription, url);
            }
            urls.len() as u64
        });
        let removed = removed.unwrap_or_default();
        self.budget.free(removed * ROW_BYTES);
        self.rows.tidy(subscription);
        for key in self.spoilt.rows_of(subscription) {
            if self.rows.with(subscription, |table| table.get(&key.url)).flatten().is_none() {
                self.spoilt.forget(|| RecordName::Row(key));
            }
        }
        Ok(removed)
    }

    async fn remove_settled_rows(&self, rows: Vec<(RowKey, Version)>) -> Vec<Result<RowRemoval>> {
        let remove = |(key, version): (RowKey, Version)| {
            let removal = self.rows.with(key.subscription, |table| match table.get(&key.url) {
                None => RowRemoval::Missing,
                Some(row) if row.is_pending() || row.dead.is_some() || row.wanted > version => {
                    RowRemoval::Kept
                }
                Some(_) => {
                    table.remove(&key.url);
                    self.rows.remove_owner(key.subscription, &key.url);
                    self.budget.free(ROW_BYTES);
                    RowRemoval::Removed
                }
            });
            Ok(removal.unwrap_or(RowRemoval::Missing))
        };
        rows.into_iter().map(remove).collect()
    }

    async fn store_lanes(&self, epoch: Epoch, lanes: Vec<LaneState>) -> Vec<Result<Applied>> {
        let store = |mut state: LaneState| {
            state.epoch = epoch;
            // Held while it is stored: whoever removes the subscription then forgets it with the others.
            let there = self.subscriptions.hold();
            if !there.has(state.lane.subscription) {
                return Ok(Applied::Missing);
            }
            Ok(self.rows.with_new(state.lane.subscription, |table| {
                match table.lanes.get(&state.lane.shard) {
                    Some(stored) if stored.epoch > epoch => Applied::Fenced { epoch: stored.epoch },
                    _ => {
                        self.mend_lane(state.lane);
                        table.lanes.insert(state.lane.shard, state.clone());
                        Applied::Done
                    }
                }
            }))
        };
        lanes.into_iter().map(store).collect()
    }

    async fn lanes(&self, subscription: SubscriptionId) -> Result<Listing<LaneState>> {
        let lanes = self.rows.with(subscription, |table| table.lanes.values().cloned().collect());
        let lanes: Vec<LaneState> = lanes.unwrap_or_default();
        let total = lanes.len() as u64;
        let name = |state: &LaneState| RecordName::Lane(state.lane);
        let read = |state| self.spoilt.read("lanes", name, state);
        Listing::of_read(lanes.into_iter().map(read), total)
    }

    fn scan_lanes(&self) -> Scan<'_, LaneState> {
        let tables = read(&self.rows.tables);
        let of = |table: &Mutex<RowTable>| {
            lock(table).lanes.values().cloned().collect::<Vec<LaneState>>()
        };
        let name = |state: &LaneState| RecordName::Lane(state.lane);
        let read = |state| self.spoilt.read("scan_lanes", name, state);
        let lanes: Vec<Result<LaneState>> = tables.values().flat_map(of).map(read).collect();
        stream::iter(lanes).boxed()
    }
}

impl MemoryRepository {
    /// Makes rows want versions.
    pub(super) fn write_spreads(&self, spreads: &[Spread]) {
        let now = self.time.now();
        // Neighbours of one subscription share a turn of its lock.
        for spreads in spreads.chunk_by(|a, b| a.subscription == b.subscription) {
            let created = self.rows.with_new(spreads[0].subscription, |table| {
                let mut created = 0;
                for spread in spreads {
                    if let Some(url) = table.spread(spread, now, |key| self.documents.interned(key))
                    {
                        self.rows.add_owner(spread.subscription, &url);
                        created += 1;
                    }
                }
                created
            });
            self.budget.take(created * ROW_BYTES);
        }
    }

    /// The row of a subscription for a document, if it can be read.
    pub(super) fn row_to_give(&self, id: SubscriptionId, url: &DocumentUrl) -> Option<Row> {
        let row = self.rows.with(id, |table| table.get(url)).flatten()?;
        self.readable_row("spread_documents", row).ok()
    }

    fn readable_row(&self, operation: &'static str, row: Row) -> Result<Row> {
        self.spoilt.read(operation, |row| RecordName::Row(row.key.clone()), row)
    }

    /// The rows of a table that a puller may have, earliest due first.
    fn claimable(&self, table: &RowTable, now: Timestamp, max: usize) -> Vec<DocumentUrl> {
        let free = |row: &Row| {
            let readable = self.spoilt.why(|| RecordName::Row(row.key.clone())).is_none();
            readable && row.is_claimable(now)
        };
        let due = table.due_by(now).filter_map(|url| table.get(url)).filter(free);
        due.map(|row| row.key.url).take(max).collect()
    }

    /// A state is written as a whole: one that was damaged is not any more.
    fn mend_lane(&self, lane: LaneId) {
        if self.spoilt.why(|| RecordName::Lane(lane)).is_some() {
            self.spoilt.forget(|| RecordName::Lane(lane));
        }
    }

    fn change<R>(&self, key: &RowKey, change: impl FnOnce(&mut Row) -> R) -> Option<R> {
        self.rows.with(key.subscription, |table| table.change(&key.url, change)).flatten()
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
