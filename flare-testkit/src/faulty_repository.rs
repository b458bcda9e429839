//! Takes a repository and a fault plan; gives one whose calls fail before or after their effect,
//! as the plan has it. Never changes an answer it lets through.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, DeadLetterId, Document, DocumentKey, DocumentUrl, Epoch, Generation, Job, JobId,
    LaneState, PartitionId, Resource, ResourceId, ResourceState, Row, RowKey, Spread, Subscription,
    SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    ClaimRows, ClaimUpdate, Clock, ClosePartition, Closed, DocumentHead, DocumentStore,
    DocumentWrite, EpochGrant, JobStore, Listing, Member, OpenPartitions, Opened, Page, Pending,
    PendingQuery, Replaced, Replay, Repository, RepositoryFacts, ResourceStore, RowRemoval,
    RowStore, RowUpdate, Scan, SubscriptionStore, Undispatched, WriteOutcome,
};
use futures::{StreamExt, stream};

use crate::FaultPlan;
use crate::delay::Delay;

/// The most items a scan gives before it breaks.
const BREAKS_WITHIN: u64 = 8;

/// A repository that fails as its [`FaultPlan`] says.
///
/// - Before its effect a call fails with [`Unavailable`](flare_core::ErrorKind::Unavailable), after
///   it with [`Timeout`](flare_core::ErrorKind::Timeout).
/// - A batch fails as a whole, or item by item; the other items take effect in their order.
/// - A spread that times out has reached some of its rows.
/// - A scan breaks somewhere along its way.
#[derive(Clone)]
pub struct FaultyRepository {
    inner: Arc<dyn Repository>,
    plan: FaultPlan,
    delay: Option<Delay>,
}

impl FaultyRepository {
    /// A repository that fails as `plan` says, in front of `inner`.
    pub fn new(inner: Arc<dyn Repository>, plan: FaultPlan) -> Self {
        Self { inner, plan, delay: None }
    }

    /// The same; a call is late by up to `longest`, by this clock, with this probability: before
    /// its effect, and again before its answer.
    #[must_use]
    pub fn delaying(mut self, probability: f64, longest: Duration, clock: Arc<dyn Clock>) -> Self {
        self.delay = Some(Delay { clock, probability, longest });
        self
    }

    async fn late(&self) {
        if let Some(delay) = &self.delay {
            delay.strike(&self.plan).await;
        }
    }

    async fn one<R>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<R>>,
    ) -> Result<R> {
        self.late().await;
        self.plan.before(operation)?;
        let answer = call.await;
        self.late().await;
        self.plan.after(operation)?;
        answer
    }

    async fn batch<T, R, F>(
        &self,
        operation: &'static str,
        items: Vec<T>,
        call: impl FnOnce(Vec<T>) -> F,
    ) -> Vec<Result<R>>
    where
        F: Future<Output = Vec<Result<R>>>,
    {
        let count = items.len();
        self.late().await;
        if let Err(error) = self.plan.before(operation) {
            return (0..count).map(|_| Err(error.clone())).collect();
        }
        let failed: Vec<Result<()>> = items.iter().map(|_| self.plan.before(operation)).collect();
        let spared = items.into_iter().zip(&failed).filter(|(_, failed)| failed.is_ok());
        let mut answers = call(spared.map(|(item, _)| item).collect()).await.into_iter();
        self.late().await;
        if let Err(error) = self.plan.after(operation) {
            return (0..count).map(|_| Err(error.clone())).collect();
        }
        let answer = |failed: Result<()>| {
            failed?;
            let answer = answers.next();
            self.plan.after(operation)?;
            answer.unwrap_or_else(|| panic!("{operation} left an item without an answer"))
        };
        failed.into_iter().map(answer).collect()
    }

    fn scan<'a, T: Send + 'a>(&self, operation: &'static str, scan: Scan<'a, T>) -> Scan<'a, T> {
        let Err(error) = self.plan.before(operation) else { return scan };
        let items = self.plan.below(BREAKS_WITHIN) as usize;
        scan.take(items).chain(stream::once(async move { Err(error) })).boxed()
    }
}

impl fmt::Debug for FaultyRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyRepository").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Delegates the calls of one store through `one`, `batch` and `scan`; what needs more is written
/// out under `own`. What a batch takes before its items is in brackets.
macro_rules! faulty {
    (
        $port:ident
        one { $(fn $one:ident($($one_arg:ident: $one_type:ty),*) -> $one_out:ty;)* }
        batch { $(fn $batch:ident$([$arg:ident: $type:ty])?($items:ident: $item:ty) -> $out:ty;)* }
        scan { $(fn $scan:ident($($scan_arg:ident: $scan_type:ty),*) -> $scan_out:ty;)* }
        own { $($own:tt)* }
    ) => {
        #[async_trait]
        impl $port for FaultyRepository {
            $(async fn $one(&self, $($one_arg: $one_type),*) -> Result<$one_out> {
                self.one(stringify!($one), self.inner.$one($($one_arg),*)).await
            })*
            $(async fn $batch(&self, $($arg: $type,)? $items: Vec<$item>) -> Vec<Result<$out>> {
                let call = |items| self.inner.$batch($($arg,)? items);
                self.batch(stringify!($batch), $items, call).await
            })*
            $(fn $scan(&self, $($scan_arg: $scan_type),*) -> Scan<'_, $scan_out> {
                self.scan(stringify!($scan), self.inner.$scan($($scan_arg),*))
            })*
            $($own)*
        }
    };
}

faulty! {
    ResourceStore
    one {
        fn insert_resource(resource: Resource) -> ();
        fn resource(id: ResourceId) -> Option<Resource>;
        fn match_resources(urls: Vec<DocumentUrl>) -> Vec<Option<Resource>>;
        fn list_resources(page: Page) -> Listing<Resource>;
        fn move_resource(id: ResourceId, from: ResourceState, to: ResourceState) -> bool;
        fn remove_resource(id: ResourceId) -> ();
    }
    batch {}
    scan {}
    own {}
}

faulty! {
    SubscriptionStore
    one {
        fn insert_subscription(subscription: Subscription, partition_limit: u32) -> Subscription;
        fn subscription(id: SubscriptionId) -> Option<Subscription>;
        fn list_subscriptions(resource: ResourceId, page: Page) -> Listing<Subscription>;
        fn partitions(resource: ResourceId) -> Vec<PartitionId>;
        fn members(resource: ResourceId, partition: PartitionId) -> Vec<Member>;
        fn replace_subscription(generation: Generation, subscription: Subscription) -> Replaced;
        fn remove_subscription(id: SubscriptionId) -> ();
    }
    batch {}
    scan { fn scan_subscriptions(after: Option<SubscriptionId>) -> Subscription; }
    own {}
}

faulty! {
    DocumentStore
    one {
        fn documents(keys: Vec<DocumentKey>) -> Vec<Option<Document>>;
        fn count_undispatched(resource: Option<ResourceId>) -> u64;
        fn remove_document(key: &DocumentKey, version: Version) -> bool;
        fn remove_documents(resource: ResourceId, limit: usize) -> u64;
    }
    batch {
        fn write_documents(writes: DocumentWrite) -> WriteOutcome;
        fn open_partitions(opens: OpenPartitions) -> Opened;
        fn close_partitions(closes: ClosePartition) -> Closed;
        fn mark_dispatched(versions: (DocumentKey, Version)) -> ();
    }
    scan {
        fn undispatched(until: Timestamp) -> Undispatched;
        fn scan_documents(resource: ResourceId, after: Option<DocumentUrl>) -> DocumentHead;
        fn tombstones(until: Timestamp) -> DocumentHead;
    }
    own {}
}

faulty! {
    RowStore
    one {
        fn next_epoch() -> EpochGrant;
        fn rows(keys: Vec<RowKey>) -> Vec<Option<Row>>;
        fn count_pending(subscription: Option<SubscriptionId>) -> Pending;
        fn claim_rows(request: ClaimRows) -> Vec<Row>;
        fn expedite_rows(subscription: SubscriptionId, limit: usize) -> u64;
        fn dead_letters(subscription: SubscriptionId, page: Page) -> Listing<Row>;
        fn find_dead_letters(subscription: SubscriptionId, ids: Vec<DeadLetterId>) -> Vec<Option<Row>>;
        fn drop_dead_letters(until: Timestamp, limit: usize) -> u64;
        fn remove_rows(subscription: SubscriptionId, limit: usize) -> u64;
        fn lanes(subscription: SubscriptionId) -> Vec<LaneState>;
    }
    batch {
        fn apply_rows[epoch: Epoch](updates: RowUpdate) -> Applied;
        fn apply_claims(updates: ClaimUpdate) -> Applied;
        fn replay_rows(replays: Replay) -> bool;
        fn remove_settled_rows(rows: (RowKey, Version)) -> RowRemoval;
        fn store_lanes[epoch: Epoch](lanes: LaneState) -> Applied;
    }
    scan { fn pending_rows(query: PendingQuery) -> Row; }
    own {
        async fn spread_rows(&self, mut spreads: Vec<Spread>) -> Result<()> {
            self.plan.before("spread_rows")?;
            let late = self.plan.after("spread_rows");
            if late.is_err() {
                // Only some of the rows were reached in time.
                spreads.truncate(self.plan.below(spreads.len() as u64 + 1) as usize);
            }
            self.inner.spread_rows(spreads).await.and(late)
        }
    }
}

faulty! {
    JobStore
    one {
        fn insert_job(job: Job) -> bool;
        fn due_jobs(due_by: Timestamp, limit: usize) -> Vec<Job>;
        fn advance_job(epoch: Epoch, id: JobId, cursor: Option<String>, due: Timestamp) -> Applied;
        fn finish_job(epoch: Epoch, id: JobId) -> Applied;
    }
    batch {}
    scan {}
    own {}
}

impl Repository for FaultyRepository {
    fn facts(&self) -> RepositoryFacts {
        self.inner.facts()
    }
}
