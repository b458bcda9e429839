//! Takes everything Flare has to remember; gives it back, changed only by single atomic
//! conditional writes. One file per kind of thing; no backend needs a transaction over two.

mod audit;
mod consumers;
mod documents;
mod jobs;
mod resources;
mod rows;
mod spreading;
mod subscriptions;

pub use audit::AuditStore;
pub use consumers::ConsumerStore;
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
pub use spreading::{DocumentsSpread, SpreadAnswer, SpreadDocuments, WrittenRows, spread_in_steps};
pub use subscriptions::{Member, Replaced, SlotQuery, SubscriptionStore};

/// The memory of Flare: its seven stores, and what they can do.
///
/// # What it costs
/// Over a network a call is a round trip, so the core asks for many things at once:
/// `flare-core/tests/pipeline/round_trips.rs` counts the calls from a put to the stored outcome and holds
/// them to a fifth of one per delivery, in batches of a hundred, and to five for a single put. A backend should need one round
/// trip for a batch, whatever number of items it has, and one for a scan that fits into a batch.
///
/// # What holds for all seven
/// - Every write is a single atomic conditional write on one record (or a batch of such): nothing
///   needs a transaction. Between two records of one call a crash may fall.
/// - What a call returned is durable, and seen by every later call from anywhere. Marks of dispatch
///   and what came of attempts are made again where they are missing: the power of the store's
///   machine may take them back, with all that was written after them. Rows that were made may not
///   be: by them a later owner knows what a client may hold.
/// - "Store time" is the store's own clock, at millisecond resolution or finer; it never runs
///   backwards. `since`, `updated_at` and "due now" are store time.
/// - Backends may keep booleans derived from versions (`pending`, `undispatched`) for their
///   indexes, recomputed in the same write, never set by hand.
///
/// # Contract: what cannot be read
/// A newer version on the same store may have written what this one does not know, and anything may
/// be damaged. A record says which format a worker must know, if it is not the first one; see
/// [`RECORD_FORMAT`](crate::model::RECORD_FORMAT).
/// - **RU1** Records are read one by one. One that is damaged, or needs a newer format, is never
///   given with less in it than it has: reading it is an error with
///   [`Error::unreadable`](crate::Error::unreadable), which names it. A batch that is read by keys
///   fails with it, and answers when it is asked without it. Fields that are not known are no
///   reason for that.
/// - **RU2** A scan gives it as one error and goes on; any other error ends the scan. It takes none
///   of the places of a limited scan: that gives as many as can be read.
/// - **RU3** A list gives it apart, in [`Listing::unreadable`](crate::port::Listing::unreadable): it
///   keeps its place, so limit, offset and total count it. So do the states of lanes.
/// - **RU4** `match_resources` fails for URLs of whose answer it would be the first, and leaves it
///   out of all others.
/// - **RU5** `members` gives a subscription that cannot be read all the same, with what can be read
///   of it: its rows are made, for nodes that can.
/// - **RU6** `discard_subscription` marks it as deleting, without reading it; `move_resource` and
///   all that removes (resources, subscriptions, documents, rows) work on it as on any other.
/// - **RU7** Every write keeps the fields it does not know.
/// - **RU8** A job that is damaged does not hold its kind and subject: another one takes its place.
///   One that needs a newer format does.
/// - **RU9** A put or delete of a document that needs a newer format fails with that and changes
///   nothing; one of a damaged document takes place or fails, and either way no other is held up.
pub trait Repository:
    ResourceStore + SubscriptionStore + DocumentStore + RowStore + JobStore + ConsumerStore + AuditStore
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
    /// Only this process sees it, and it ends with the process.
    pub in_process: bool,
    /// `spread_documents` is one write: dispatching what it spreads costs nothing more.
    pub spreads_at_once: bool,
    /// Documents may be put into it beside Flare, so that `take_puts_beside` is worth asking.
    pub puts_beside: bool,
}

impl RepositoryFacts {
    /// A backend that takes batches of `max_batch` and documents of `max_content` bytes.
    pub const fn new(max_batch: usize, max_content: usize) -> Self {
        let (in_process, spreads_at_once, puts_beside) = (false, false, false);
        Self { max_batch, max_content, in_process, spreads_at_once, puts_beside }
    }

    /// The same, in the memory of this process.
    #[must_use]
    pub const fn in_process(mut self) -> Self {
        self.in_process = true;
        self
    }

    /// The same; documents are spread to everyone in one write.
    #[must_use]
    pub const fn spreads_at_once(mut self) -> Self {
        self.spreads_at_once = true;
        self
    }

    /// The same; documents may be put into it beside Flare.
    #[must_use]
    pub const fn puts_beside(mut self) -> Self {
        self.puts_beside = true;
        self
    }
}
