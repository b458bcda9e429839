//! How one change travels, in travel order:
//!
//! 1. `ingest`: a put or delete, if `admission` lets it in, becomes one atomic conditional write,
//!    which decides whether anything changed. The document is *undispatched* from then on. Where
//!    several resources match its URL, `overlap` says which of them has it, and `moves` takes it to
//!    the most specific one.
//! 2. `partition`: finds the partitions of the document's resource, if it still has to be spread
//!    (`outstanding`).
//! 3. `spread`: writes a row per subscription of a partition, then wakes the lanes (`wake`). Where there is
//!    one partition, `spread_all` has the store do both steps at once, and hands the lanes of this process
//!    what was written.
//! 4. `lanes` and `lane`: the owner of a lane (`Term`, in `ownership/`) loads its due rows, composes
//!    the request (`compose`, `sign`), makes the attempt, judges it (`judge`, `backoff`) and stores
//!    what came of it, fenced.
//!
//! Documents that are pulled rather than handed over come in by `consumers`, which hands them to `ingest`.
//! Those that a host's own transaction puts into the store `beside` announces.
//!
//! A client that takes changes when it likes has the same rows: `pull` hands them out and settles them.
//!
//! Beside the journey, `jobs` does long work that is stored and resumable: removing what is left
//! of what was deleted (`retire` and `close` mark it), forgetting what is past its retention.
//!
//! `stage` is the loop between a queue and a lane, `crew` the workers of the stages before it (`shares`
//! and `turn` say which resource they are at, and for how long), `port/task.rs` what they say to each other
//! and `load` what a batch of it comes to. `reconcile` finds what was lost between them; `restore` brings a
//! vanished queue back; `overview` tells how all subscriptions are doing. Queues only wake; documents and rows are the truth, so every arrow may be lost, doubled
//! or late.

pub(crate) mod admission;
pub(crate) mod backoff;
pub(crate) mod batch;
pub(crate) mod beside;
pub(crate) mod close;
pub(crate) mod compose;
pub(crate) mod consumers;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod crew;
pub(crate) mod current_trace;
pub(crate) mod event;
mod filtering;
pub(crate) mod health;
pub(crate) mod ingest;
pub(crate) mod jobs;
pub(crate) mod judge;
pub(crate) mod lane;
pub(crate) mod lanes;
pub(crate) mod load;
pub(crate) mod meter;
#[cfg(feature = "metrics")]
mod metered_names;
pub(crate) mod moves;
pub(crate) mod outstanding;
pub(crate) mod overlap;
pub(crate) mod overview;
pub(crate) mod partition;
pub(crate) mod prepare;
pub(crate) mod progress;
pub(crate) mod pull;
pub(crate) mod put_counts;
mod reading;
pub(crate) mod reconcile;
pub(crate) mod restore;
pub(crate) mod retire;
pub(crate) mod settings;
pub(crate) mod shares;
pub(crate) mod sign;
pub(crate) mod spread;
pub(crate) mod spread_all;
pub(crate) mod stage;
pub(crate) mod stop;
pub(crate) mod store_clock;
pub(crate) mod turn;
pub(crate) mod unreadable;
pub(crate) mod wake;
#[cfg(feature = "metrics")]
mod worst;

pub use consumers::ConsumerTotals;
pub use event::{Event, EventKind, EventListener, Told};
pub use overview::OverviewTotals;
pub use progress::LoopReport;
pub use pull::{PullOutcome, PullSettlement, Pulled};
pub use put_counts::PutRates;
pub use settings::Settings;
