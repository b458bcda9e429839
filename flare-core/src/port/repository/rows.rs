//! Takes what has to be told to whom and what came of it; gives what is pending, due, dead.

use std::fmt;

use async_trait::async_trait;

use super::{SpreadAnswer, SpreadDocuments};
use crate::error::Result;
use crate::model::{
    Applied, BucketRange, ClaimEffect, ClaimId, DeadLetterId, DocumentKey, Epoch, LaneState, Round,
    Row, RowEffect, RowKey, Spread, SubscriptionId, Timestamp, Version,
};
use crate::port::{Listing, Page, Scan};

/// Keeps delivery state: one row per (subscription, document), and one state per lane.
///
/// # Contract
/// - **RR1** `next_epoch` gives a number greater than all it gave before, to anybody, for ever,
///   with the store's time. `store_time` tells that time alone.
/// - **RR2** `spread_rows` does to each row what [`Row::spread`] says, creating it if need be:
///   it raises `wanted` and `generation`; a row that becomes pending by it begins anew at store
///   time, or when its client allows. It never touches settled, given up, present or epoch.
///   Repeating it changes nothing.
/// - **RR3** `apply_rows` does to each row what [`Row::apply`] says, in one conditional write on
///   `row.epoch ≤ epoch`, `row.round = round` and `row.settled < version`, storing the epoch: a
///   cut-off owner overwrites nothing of its successor's, and settled and given up versions only
///   rise within a round. An effect that is both late and fenced is fenced.
/// - **RR4** Settling, retrying and giving up are kept apart from a spread that runs at the same
///   time: neither loses what the other wrote.
/// - **RR5** `pending_rows` gives the pending rows of the subscription within the bucket range
///   that are due by the time named (all, if none is), earliest due first, at most `limit`; or of
///   these only those that were demanded.
/// - **RR6** `count_pending` is exact, of one subscription or of all, with the earliest `since`
///   and the earliest `due` among them.
/// - **RR7** `claim_rows` hands up to `max` rows that are [claimable](Row::is_claimable) by store time
///   to the claim, earliest due first, and does to each what [`Row::claim`] says; no row is handed to
///   two claims that both hold. A call is handed some as long as there are as many as all calls that are under
///   way ask for, however much faster others are at the first of them. `apply_claims` does what [`Row::apply_claimed`] says, by store time:
///   after the claim lapsed it changes nothing.
/// - **RR8** A row given up is a dead letter while it has details: listed oldest death first with
///   their total, and found by id; a settlement of that or a later version removes it.
/// - **RR9** `replay_rows` does to each row what [`Row::replay`] says, in one write conditional on
///   the version given up; a second replay of the same answers false.
/// - **RR10** `drop_dead_letters` drops the details of up to `limit` rows that died at or before
///   the time named, keeps `given_up`, and says how many.
/// - **RR11** `expedite_rows` does to up to `limit` rows of the subscription that are due later what
///   [`Row::expedite`] says, by store time, and says how many; it changes nothing else.
/// - **RR12** `remove_rows` removes up to `limit` rows of a subscription, whatever their state,
///   and says how many; zero means that none is left. `remove_settled_rows` removes a row only if
///   it is neither pending nor a dead letter and wants nothing beyond the version named.
/// - **RR13** `store_lanes` stores a lane's state, under the epoch named, only if no greater epoch
///   has stored one, and only for a subscription that is there: of one that is not, the answer is
///   [`Applied::Missing`]. `lanes` gives those of a subscription in shard order.
/// - **RR14** `rows` reads rows by key, one answer per key, as last written.
/// - **RR15** `rows_of` gives up to `limit` rows of these documents, whosever they are, by URL and then
///   by subscription, after the one named: every row whose spread returned before the call. Its cost
///   grows with the documents named and the rows they have, not with the subscriptions there are.
/// - **RR16** A spread because of a refused document makes no row; where there is one it does what a
///   change does.
/// - **RR17** A spread because of a backfill or resync begins its round as [`Row::spread`] says, and at
///   most once: repeating it changes nothing, and neither does one of an earlier round.
/// - **RR18** `demand_rows` does to up to `max` rows that are [claimable](Row::is_claimable) by store
///   time what [`Row::demand`] says, earliest due first, and says how many: some, as long as there are as
///   many as all calls that are under way ask for.
/// - **RR19** `spread_documents` has everyone whose insert returned before the call told of the documents,
///   as `spread_rows` would for each of them: of the first ones that fit into the rows allowed, those that
///   [still have to be spread](crate::model::Document::owes) at the version named. It says how many it took and whom it
///   told. A document that cannot be read fails the call.
/// - **RR20** Where the caller has more to decide ([`SpreadDocuments::is_apart`]) it writes nothing and
///   says so.
/// - **RR21** It dispatches what it spreads if that is asked for, and only then; never before all rows of
///   the document are written, whatever crashes.
/// - **RR22** What it gives back was read no sooner than it was written: rows as they are then, each with
///   its document, content included; no more content than may be given, and nothing that cannot be read.
/// - **RR23** `pending_each` gives of every subscription that has something pending what `count_pending`
///   says of it, each once, in an order of its own. Its cost grows with what is pending, not with the
///   subscriptions or rows there are.
/// - **RR24** `scan_lanes` gives the states of all lanes of all subscriptions, each once and as `lanes`
///   gives it, in an order of its own.
#[async_trait]
pub trait RowStore: fmt::Debug + Send + Sync + 'static {
    /// The store's time.
    async fn store_time(&self) -> Result<Timestamp>;

    /// Draws a new epoch.
    async fn next_epoch(&self) -> Result<EpochGrant>;

    /// Makes rows want versions. Not fenced; all or an error, and repeatable.
    async fn spread_rows(&self, spreads: Vec<Spread>) -> Result<()>;

    /// Has everyone who subscribed to a resource told of documents. Not fenced; repeatable.
    async fn spread_documents(&self, request: SpreadDocuments) -> Result<SpreadAnswer>;

    /// Reads rows.
    async fn rows(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>>;

    /// Reads the rows of documents, of all subscriptions; the total is of these, and fewer than `limit`
    /// are the last.
    async fn rows_of(
        &self,
        documents: Vec<DocumentKey>,
        after: Option<RowKey>,
        limit: usize,
    ) -> Result<Listing<Row>>;

    /// Reads what is pending.
    fn pending_rows(&self, query: PendingQuery) -> Scan<'_, Row>;

    /// Counts what is pending, of one subscription or of all.
    async fn count_pending(&self, subscription: Option<SubscriptionId>) -> Result<Pending>;

    /// Counts what is pending, of each subscription by itself.
    fn pending_each(&self) -> Scan<'_, (SubscriptionId, Pending)>;

    /// Applies effects of a lane's owner, fenced; one answer per row.
    async fn apply_rows(&self, epoch: Epoch, updates: Vec<RowUpdate>) -> Vec<Result<Applied>>;

    /// Hands pending rows to a puller.
    async fn claim_rows(&self, request: ClaimRows) -> Result<Vec<Row>>;

    /// Marks rows that wait as asked for by their client; tells how many.
    async fn demand_rows(&self, subscription: SubscriptionId, max: usize) -> Result<u64>;

    /// Applies what a puller settled; one answer per row.
    async fn apply_claims(&self, updates: Vec<ClaimUpdate>) -> Vec<Result<Applied>>;

    /// Makes rows due now that are pending and due later; tells how many.
    async fn expedite_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64>;

    /// Lists the dead letters of a subscription.
    async fn dead_letters(&self, subscription: SubscriptionId, page: Page) -> Result<Listing<Row>>;

    /// Finds dead letters by id; one answer per id.
    async fn find_dead_letters(
        &self,
        subscription: SubscriptionId,
        ids: Vec<DeadLetterId>,
    ) -> Result<Vec<Option<Row>>>;

    /// Takes versions off the dead letters and makes them due; one answer per row.
    async fn replay_rows(&self, replays: Vec<Replay>) -> Vec<Result<bool>>;

    /// Drops the details of old dead letters; tells how many.
    async fn drop_dead_letters(&self, until: Timestamp, limit: usize) -> Result<u64>;

    /// Removes some of a subscription's rows; tells how many.
    async fn remove_rows(&self, subscription: SubscriptionId, limit: usize) -> Result<u64>;

    /// Removes rows that have nothing left to tell up to a version; one answer per row.
    async fn remove_settled_rows(&self, rows: Vec<(RowKey, Version)>) -> Vec<Result<RowRemoval>>;

    /// Stores the states of lanes, fenced; one answer per lane.
    async fn store_lanes(&self, epoch: Epoch, lanes: Vec<LaneState>) -> Vec<Result<Applied>>;

    /// Reads the states of a subscription's lanes, all of them.
    async fn lanes(&self, subscription: SubscriptionId) -> Result<Listing<LaneState>>;

    /// Reads the states of the lanes of all subscriptions.
    fn scan_lanes(&self) -> Scan<'_, LaneState>;
}

/// An epoch and the store's time at which it was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochGrant {
    /// The epoch.
    pub epoch: Epoch,
    /// The store's time.
    pub at: Timestamp,
}

/// Which pending rows to read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingQuery {
    /// Whose rows.
    pub subscription: SubscriptionId,
    /// Of which lane.
    pub buckets: BucketRange,
    /// Due at or before this time; `None` for all.
    pub due_by: Option<Timestamp>,
    /// At most this many.
    pub limit: usize,
    /// Only those that were demanded.
    pub demanded: bool,
}

impl PendingQuery {
    /// Up to `limit` pending rows of a subscription, whenever they are due.
    pub const fn new(subscription: SubscriptionId, limit: usize) -> Self {
        Self { subscription, buckets: BucketRange::ALL, due_by: None, limit, demanded: false }
    }

    /// The same, within a lane's buckets.
    #[must_use]
    pub const fn buckets(mut self, buckets: BucketRange) -> Self {
        self.buckets = buckets;
        self
    }

    /// The same, of what was demanded.
    #[must_use]
    pub const fn demanded(mut self, demanded: bool) -> Self {
        self.demanded = demanded;
        self
    }

    /// The same, due by `time`.
    #[must_use]
    pub const fn due_by(mut self, time: Timestamp) -> Self {
        self.due_by = Some(time);
        self
    }
}

/// How much is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Pending {
    /// How many rows: the lag.
    pub count: u64,
    /// Since when the oldest of them is pending.
    pub oldest_since: Option<Timestamp>,
    /// When the next of them is due.
    pub next_due: Option<Timestamp>,
}

impl Pending {
    /// A count as a backend hands it out.
    pub const fn new(
        count: u64,
        oldest_since: Option<Timestamp>,
        next_due: Option<Timestamp>,
    ) -> Self {
        Self { count, oldest_since, next_due }
    }
}

/// An effect on one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowUpdate {
    /// Which row.
    pub key: RowKey,
    /// In which round it was read.
    pub round: Round,
    /// What to do to it.
    pub effect: RowEffect,
}

/// Which rows to hand to a puller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRows {
    /// Whose rows.
    pub subscription: SubscriptionId,
    /// The claim they are handed to; fresh for each call.
    pub claim: ClaimId,
    /// At most this many.
    pub max: usize,
    /// How long the claim holds, from store time on.
    pub holds_for: std::time::Duration,
}

/// What a puller did with one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimUpdate {
    /// Which row.
    pub key: RowKey,
    /// Under which claim.
    pub claim: ClaimId,
    /// In which round it was handed out.
    pub round: Round,
    /// What to do to it.
    pub effect: ClaimEffect,
}

/// A version to take off the dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// Which row.
    pub key: RowKey,
    /// The version it gave up.
    pub version: Version,
}

/// What became of the removal of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowRemoval {
    /// It is gone.
    Removed,
    /// It has something left to tell, or is a dead letter, or is past the version: it stays.
    Kept,
    /// There was none.
    Missing,
}
