//! Takes a wrapper of a repository; gives it the five stores, every call passed on through the
//! wrapper's own hooks. The one list of calls that every such double follows.
//!
//! A wrapper has a field `inner: Arc<dyn Repository>` and these hooks, each of which is told the
//! call's name:
//! - `one(name, call)` for calls about one thing;
//! - `many(name, items, call)` for calls that answer many items at once, or fail as a whole;
//! - `batch(name, items, call)` for calls with an answer per item;
//! - `spread(name, items, call)` for the one write that fails as a whole;
//! - `scan(name, scan)` for streams.

/// Writes one store; what a call takes before its items is in brackets.
macro_rules! delegate_store {
    (
        $wrapper:ident: $port:ident
        one { $(fn $one:ident($($one_arg:ident: $one_type:ty),*) -> $one_out:ty;)* }
        many { $(fn $many:ident$([$many_arg:ident: $many_type:ty])?($many_item:ty) -> $many_out:ty;)* }
        batch { $(fn $batch:ident$([$arg:ident: $type:ty])?($item:ty) -> $out:ty;)* }
        spread { $(fn $spread:ident($spread_item:ty);)* }
        scan { $(fn $scan:ident($($scan_arg:ident: $scan_type:ty),*) -> $scan_out:ty;)* }
    ) => {
        #[async_trait::async_trait]
        impl flare_core::port::$port for $wrapper {
            $(async fn $one(&self, $($one_arg: $one_type),*) -> Result<$one_out> {
                self.one(stringify!($one), self.inner.$one($($one_arg),*)).await
            })*
            $(async fn $many(
                &self, $($many_arg: $many_type,)? items: Vec<$many_item>,
            ) -> Result<Vec<$many_out>> {
                let call = |items| self.inner.$many($($many_arg,)? items);
                self.many(stringify!($many), items, call).await
            })*
            $(async fn $batch(&self, $($arg: $type,)? items: Vec<$item>) -> Vec<Result<$out>> {
                let call = |items| self.inner.$batch($($arg,)? items);
                self.batch(stringify!($batch), items, call).await
            })*
            $(async fn $spread(&self, items: Vec<$spread_item>) -> Result<()> {
                self.spread(stringify!($spread), items, |items| self.inner.$spread(items)).await
            })*
            $(fn $scan(&self, $($scan_arg: $scan_type),*) -> Scan<'_, $scan_out> {
                self.scan(stringify!($scan), self.inner.$scan($($scan_arg),*))
            })*
        }
    };
}
pub(crate) use delegate_store;

/// Makes a wrapper all five stores; their facts are its own business.
macro_rules! delegate_stores {
    ($wrapper:ident) => {
        const _: () = {
            use flare_core::Result;
            use flare_core::model::{
                Applied, DeadLetterId, Document, DocumentKey, DocumentUrl, Epoch, Generation, Job,
                JobId, JobKind, LaneState, PartitionId, Resource, ResourceId, ResourceState, Row, RowKey,
                Spread, Subscription, SubscriptionId, Timestamp, Version,
            };
            use flare_core::port::{
                ClaimRows, ClaimUpdate, ClosePartition, Closed, DocumentHead, DocumentWrite,
                EpochGrant, Listing, Member, OpenPartitions, Opened, Page, Pending, PendingQuery,
                Replaced, Replay, RowRemoval, RowUpdate, Scan,
                Undispatched, WriteOutcome,
            };

            use crate::delegate::delegate_store;

            delegate_store! {
                $wrapper: ResourceStore
                one {
                    fn insert_resource(resource: Resource) -> ();
                    fn resource(id: ResourceId) -> Option<Resource>;
                    fn list_resources(page: Page) -> Listing<Resource>;
                    fn move_resource(id: ResourceId, from: ResourceState, to: ResourceState) -> bool;
                    fn remove_resource(id: ResourceId) -> ();
                }
                many { fn match_resources(DocumentUrl) -> Vec<Resource>; }
                batch {}
                spread {}
                scan {}
            }

            delegate_store! {
                $wrapper: SubscriptionStore
                one {
                    fn insert_subscription(new: Subscription, partition_limit: u32) -> Subscription;
                    fn subscription(id: SubscriptionId) -> Option<Subscription>;
                    fn list_subscriptions(resource: ResourceId, page: Page) -> Listing<Subscription>;
                    fn partitions(resource: ResourceId) -> Vec<PartitionId>;
                    fn members(resource: ResourceId, partition: PartitionId) -> Vec<Member>;
                    fn replace_subscription(at: Generation, newer: Subscription) -> Replaced;
                    fn discard_subscription(id: SubscriptionId) -> bool;
                    fn remove_subscription(id: SubscriptionId) -> ();
                }
                many {}
                batch {}
                spread {}
                scan { fn scan_subscriptions(after: Option<SubscriptionId>) -> Subscription; }
            }

            delegate_store! {
                $wrapper: DocumentStore
                one {
                    fn count_undispatched(resource: Option<ResourceId>) -> u64;
                    fn remove_document(key: &DocumentKey, version: Version) -> bool;
                    fn remove_documents(resource: ResourceId, limit: usize) -> u64;
                }
                many {
                    fn documents(DocumentKey) -> Option<Document>;
                    fn document_heads(DocumentKey) -> Option<Document>;
                }
                batch {
                    fn write_documents(DocumentWrite) -> WriteOutcome;
                    fn open_partitions(OpenPartitions) -> Opened;
                    fn close_partitions(ClosePartition) -> Closed;
                    fn mark_dispatched((DocumentKey, Version)) -> ();
                }
                spread {}
                scan {
                    fn undispatched(until: Timestamp) -> Undispatched;
                    fn scan_documents(of: ResourceId, after: Option<DocumentUrl>) -> DocumentHead;
                    fn tombstones(after: Option<Timestamp>, until: Timestamp) -> DocumentHead;
                }
            }

            delegate_store! {
                $wrapper: RowStore
                one {
                    fn store_time() -> Timestamp;
                    fn next_epoch() -> EpochGrant;
                    fn count_pending(subscription: Option<SubscriptionId>) -> Pending;
                    fn rows_of(documents: Vec<DocumentKey>, after: Option<RowKey>, limit: usize)
                        -> Listing<Row>;
                    fn claim_rows(request: ClaimRows) -> Vec<Row>;
                    fn expedite_rows(subscription: SubscriptionId, limit: usize) -> u64;
                    fn dead_letters(subscription: SubscriptionId, page: Page) -> Listing<Row>;
                    fn drop_dead_letters(until: Timestamp, limit: usize) -> u64;
                    fn remove_rows(subscription: SubscriptionId, limit: usize) -> u64;
                    fn lanes(subscription: SubscriptionId) -> Listing<LaneState>;
                }
                many {
                    fn rows(RowKey) -> Option<Row>;
                    fn find_dead_letters[subscription: SubscriptionId](DeadLetterId) -> Option<Row>;
                }
                batch {
                    fn apply_rows[epoch: Epoch](RowUpdate) -> Applied;
                    fn apply_claims(ClaimUpdate) -> Applied;
                    fn replay_rows(Replay) -> bool;
                    fn remove_settled_rows((RowKey, Version)) -> RowRemoval;
                    fn store_lanes[epoch: Epoch](LaneState) -> Applied;
                }
                spread { fn spread_rows(Spread); }
                scan { fn pending_rows(query: PendingQuery) -> Row; }
            }

            delegate_store! {
                $wrapper: JobStore
                one {
                    fn insert_job(job: Job) -> bool;
                    fn job(kind: JobKind, subject: &str) -> Option<Job>;
                    fn advance_job(epoch: Epoch, id: JobId, cursor: Option<String>, due: Timestamp)
                        -> Applied;
                    fn finish_job(epoch: Epoch, id: JobId) -> Applied;
                }
                many {}
                batch {}
                spread {}
                scan { fn due_jobs(due_by: Timestamp, limit: usize) -> Job; }
            }
        };
    };
}
pub(crate) use delegate_stores;
