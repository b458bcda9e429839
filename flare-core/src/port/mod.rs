//! What Flare asks of the world: small dyn-safe traits with numbered contracts.
//!
//! Every clause has a conformance test of the same number in `flare-testkit`, which anybody's
//! backend can run. Ports import the model and the error, nothing else of Flare.
//!
//! | port | asks | clauses |
//! |---|---|---|
//! | [`Repository`] | keep documents, rows, resources, subscriptions, jobs, consumers and what was done | RE, RS, RD, RR, RJ, RC, RA, RU |
//! | [`Queue`] | wake a worker up | Q |
//! | [`Lease`] | agree on who is there and who does what | L |
//! | [`Delivery`] | make one attempt to tell a client | D |
//! | [`Source`] | give messages that documents are made of | S |
//! | [`Clock`] | tell the time and wait | C |
//! | [`Upkeep`] | keep a store in order, step by step | U |
//!
//! Calls that take a `Vec` are batches: one result per item, in the items' order, and an item
//! that fails says nothing about the others. Callers keep batches within the backend's facts.
//! Every call may fail with [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) before its
//! effect or with [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) after it: every write is
//! therefore safe to repeat.
//!
//! What an implementor is given, or answers with, are enums it can match whole: when one grows, its
//! compiler names the place. Those that it only makes, and hosts read, may grow unnoticed.

pub(crate) mod clock;
mod delivery;
mod lease;
mod page;
mod queue;
mod repository;
mod source;
#[cfg_attr(not(feature = "internals"), allow(unreachable_pub))]
pub(crate) mod task;
mod upkeep;

pub use clock::{Clock, SystemClock};
pub use delivery::{Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, Reply, RetryAfter};
pub use lease::{
    Entry, Expect, KeyChange, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Snapshot,
    StoreRevision, Write, Written,
};
pub use page::{Listing, Page};
pub use queue::{
    Incoming, Outgoing, Queue, QueueDepth, QueueExt, QueueFacts, QueueName, Receipt, Receive,
    Settlement, Unsettled,
};
pub use repository::{
    AuditStore, ClaimRows, ClaimUpdate, ClosePartition, Closed, ConsumerStore, DocumentHead,
    DocumentStore, DocumentWrite, DocumentsSpread, EpochGrant, JobStore, Member, OpenPartitions,
    Opened, Operation, Pending, PendingQuery, Replaced, Replay, Repository, RepositoryFacts,
    ResourceStore, RowRemoval, RowStore, RowUpdate, SlotQuery, SpreadAnswer, SpreadDocuments,
    SubscriptionStore, Undispatched, WriteOutcome, WrittenRows, spread_in_steps,
};
pub use source::{
    CheckpointKeeper, Source, SourceConnector, SourceFacts, SourceLag, SourceMessage,
    SourceOpening, SourceSettlement,
};
pub use upkeep::{Part, Purpose, Step, StepKind, StepOutcome, StepProgress, Upkeep, no_backup};

use futures::stream::BoxStream;

use crate::error::Result;

/// A read that is fetched piece by piece: holding it costs bounded memory, however long it is.
///
/// A record that cannot be read is an error in its place
/// ([`Error::unreadable`](crate::Error::unreadable)), and the scan goes on after it; any other error
/// is its end.
pub type Scan<'a, T> = BoxStream<'a, Result<T>>;
