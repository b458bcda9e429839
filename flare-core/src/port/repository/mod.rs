//! Takes everything Flare has to remember; gives it back, changed only by single atomic
//! conditional writes. One file per kind of thing; no backend needs a transaction over two.

mod documents;
mod jobs;
mod resources;
mod rows;
mod subscriptions;

pub use documents::{
    ClosePartition, Closed, DocumentHead, DocumentStore, DocumentWrite, OpenPartitions, Opened,
    Operation, Undispatched, WriteOutcome,
};
pub use jobs::JobStore;
pub use resources::ResourceStore;
pub use rows::{
    ClaimRows, ClaimUpdate, EpochGrant, Pending, PendingQuery, Replay, RowRemoval, RowStore,
    RowUpdate,
};
pub use subscriptions::{Member, Replaced, SubscriptionStore};

/// The memory of Flare: its five stores, and what they can do.
///
/// # What it costs
/// Over a network a call is a round trip, so whoever calls asks for many things at once:
/// `flare-core/tests/round_trips.rs` counts the calls from a put to the stored outcome and holds
/// them to a fifth of one per delivery, in batches of a hundred. A backend should need one round
/// trip for a batch, whatever number of items it has, and one for a scan that fits into a batch.
///
/// # What holds for all five
/// - Every write is a single atomic conditional write on one record (or a batch of such): nothing
///   needs a transaction. Between two records of one call a crash may fall.
/// - What a call returned is durable, and seen by every later call from anywhere.
/// - "Store time" is the store's own clock, at millisecond resolution or finer; it never runs
///   backwards. `since`, `updated_at` and "due now" are store time.
/// - Backends may keep booleans derived from versions (`pending`, `undispatched`) for their
///   indexes, recomputed in the same write, never set by hand.
pub trait Repository:
    ResourceStore + SubscriptionStore + DocumentStore + RowStore + JobStore
{
    /// What this backend can do; read once, honoured above the port.
    fn facts(&self) -> RepositoryFacts;
}

/// What a repository backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryFacts {
    /// Items per batch call. Scans are none: a store reads them in parts of its own choice.
    pub max_batch: usize,
    /// Bytes of content per document.
    pub max_content: usize,
}

impl RepositoryFacts {
    /// A backend that takes batches of `max_batch` and documents of `max_content` bytes.
    pub const fn new(max_batch: usize, max_content: usize) -> Self {
        Self { max_batch, max_content }
    }
}
