//! The calls of a repository, and what may answer them in its place.

use std::time::Duration;

use flare_core::Result;
use flare_core::model::{
    Applied, AuditEntry, AuditSubject, Consumer, ConsumerId, ConsumerState, DeadLetterId, Document,
    DocumentKey, DocumentUrl, Epoch, Generation, Job, JobId, JobKind, LaneState, PartitionId,
    Reject, RejectId, Resource, ResourceId, ResourceState, Row, RowKey, Spread, Subscription,
    SubscriptionId, Timestamp, Version,
};
use flare_core::port::{
    ClaimRows, ClaimUpdate, ClosePartition, Closed, DocumentHead, DocumentWrite, EpochGrant,
    Listing, Member, OpenPartitions, Opened, Page, Pending, PendingQuery, Replaced, Replay,
    Repository, RepositoryFacts, RowRemoval, RowUpdate, Scan, SlotQuery, SpreadAnswer,
    SpreadDocuments, Undispatched, WriteOutcome,
};

use super::calls::intercepted;
use super::{Call, Hooks, Intercepted, around};

intercepted! {
    /// What may answer the calls of a repository; unless it does, they are passed on.
    RepositoryHooks for dyn Repository {
        /// In place of the facts.
        fn facts(&self, inner: &dyn Repository) -> RepositoryFacts {
            inner.facts()
        }
    }

    Repository {
        also {
            fn facts(&self) -> RepositoryFacts {
                self.hooks.facts(&*self.inner)
            }
        }
    }

    ResourceStore {
        one {
            fn insert_resource(resource: Resource) -> ();
            fn resource(id: ResourceId) -> Option<Resource>;
            fn list_resources(page: Page) -> Listing<Resource>;
            fn move_resource(id: ResourceId, from: ResourceState, to: ResourceState) -> bool;
            fn remove_resource(id: ResourceId) -> ();
        }
        many { fn match_resources(DocumentUrl) -> Vec<Vec<Resource>>; }
    }

    SubscriptionStore {
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
        scan {
            fn scan_subscriptions(after: Option<SubscriptionId>) -> Subscription;
            fn subscriptions_in(slots: SlotQuery, after: Option<SubscriptionId>) -> Subscription;
            fn scan_members() -> Member;
        }
    }

    DocumentStore {
        one {
            fn take_puts_beside(limit: usize, wait: Duration) -> Vec<Undispatched>;
            fn count_undispatched(resource: Option<ResourceId>) -> u64;
            fn count_documents(resource: ResourceId) -> u64;
            fn remove_document(key: &DocumentKey, version: Version) -> bool;
            fn remove_documents(resource: ResourceId, limit: usize) -> u64;
        }
        many {
            fn documents(DocumentKey) -> Vec<Option<Document>>;
            fn document_heads(DocumentKey) -> Vec<Option<Document>>;
        }
        batch {
            fn write_documents(DocumentWrite) -> WriteOutcome;
            fn open_partitions(OpenPartitions) -> Opened;
            fn close_partitions(ClosePartition) -> Closed;
            fn mark_dispatched((DocumentKey, Version)) -> ();
        }
        scan {
            fn undispatched(until: Timestamp) -> Undispatched;
            fn scan_documents(of: ResourceId, after: Option<DocumentUrl>) -> DocumentHead;
            fn tombstones(after: Option<Timestamp>, until: Timestamp) -> DocumentHead;
        }
    }

    RowStore {
        one {
            fn store_time() -> Timestamp;
            fn next_epoch() -> EpochGrant;
            fn count_pending(subscription: Option<SubscriptionId>) -> Pending;
            fn rows_of(documents: Vec<DocumentKey>, after: Option<RowKey>, limit: usize)
                -> Listing<Row>;
            fn spread_documents(request: SpreadDocuments) -> SpreadAnswer;
            fn claim_rows(request: ClaimRows) -> Vec<Row>;
            fn demand_rows(subscription: SubscriptionId, max: usize) -> u64;
            fn expedite_rows(subscription: SubscriptionId, limit: usize) -> u64;
            fn dead_letters(subscription: SubscriptionId, page: Page) -> Listing<Row>;
            fn drop_dead_letters(until: Timestamp, limit: usize) -> u64;
            fn remove_rows(subscription: SubscriptionId, limit: usize) -> u64;
            fn lanes(subscription: SubscriptionId) -> Listing<LaneState>;
        }
        many {
            fn rows(RowKey) -> Vec<Option<Row>>;
            fn spread_rows(Spread) -> ();
            fn find_dead_letters[of: SubscriptionId](DeadLetterId) -> Vec<Option<Row>>;
        }
        batch {
            fn apply_rows[epoch: Epoch](RowUpdate) -> Applied;
            fn apply_claims(ClaimUpdate) -> Applied;
            fn replay_rows(Replay) -> bool;
            fn remove_settled_rows((RowKey, Version)) -> RowRemoval;
            fn store_lanes[epoch: Epoch](LaneState) -> Applied;
        }
        scan {
            fn pending_rows(query: PendingQuery) -> Row;
            fn pending_each() -> (SubscriptionId, Pending);
            fn scan_lanes() -> LaneState;
        }
    }

    JobStore {
        one {
            fn insert_job(job: Job) -> bool;
            fn job(kind: JobKind, subject: &str) -> Option<Job>;
            fn list_jobs(page: Page) -> Listing<Job>;
            fn claim_job(epoch: Epoch, id: JobId, due_by: Timestamp, until: Timestamp)
                -> Option<Job>;
            fn advance_job(epoch: Epoch, id: JobId, cursor: Option<String>, due: Timestamp)
                -> Applied;
            fn finish_job(epoch: Epoch, id: JobId) -> Applied;
        }
        scan { fn due_jobs(due_by: Timestamp, limit: usize) -> Job; }
    }

    ConsumerStore {
        one {
            fn insert_consumer(new: Consumer) -> Consumer;
            fn consumer(id: ConsumerId) -> Option<Consumer>;
            fn list_consumers(page: Page) -> Listing<Consumer>;
            fn replace_consumer(at: Generation, newer: Consumer) -> Replaced<Consumer>;
            fn remove_consumer(id: ConsumerId, at: Option<Generation>) -> bool;
            fn store_consumer_state(epoch: Epoch, id: ConsumerId, state: ConsumerState) -> Applied;
            fn claim_consumer_state(epoch: Epoch, id: ConsumerId) -> Option<ConsumerState>;
            fn consumer_states(ids: Vec<ConsumerId>) -> Vec<(ConsumerId, Epoch, ConsumerState)>;
            fn insert_rejects(rejects: Vec<Reject>, most: usize) -> ();
            fn list_rejects(consumer: ConsumerId, page: Page) -> Listing<Reject>;
            fn rejects(consumer: ConsumerId, ids: Vec<RejectId>) -> Vec<Reject>;
            fn remove_rejects(consumer: ConsumerId, ids: Vec<RejectId>) -> ();
            fn expire_rejects(consumer: ConsumerId, before: Timestamp, limit: usize) -> u64;
        }
        scan { fn scan_consumers(after: Option<ConsumerId>) -> Consumer; }
    }

    AuditStore {
        one {
            fn list_audit(subject: Option<&AuditSubject>, page: Page) -> Listing<AuditEntry>;
            fn trim_audit(keep: u64, before: Timestamp, limit: usize) -> u64;
        }
        many { fn insert_audit(AuditEntry) -> (); }
    }
}
