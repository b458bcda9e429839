#![doc = include_str!("../README.md")]

mod app;
mod audit;
pub mod cluster;
mod error;
pub mod filter;
#[cfg(feature = "http")]
pub mod http;
pub mod model;
pub mod observe;
#[cfg_attr(not(feature = "internals"), allow(unreachable_pub))]
mod ownership;
mod pipeline;
pub mod port;
pub mod prelude;
mod tools;
pub mod upkeep;

pub use app::{
    Backend, ConsumerReport, Flare, FlareBuilder, JobReport, Left, NodeReport, OverviewQuery, Pull,
    RetriedRejects, Runtime, RuntimeHandle, StatusWatch, SubscriptionOverview, TriedDocument,
};
pub use error::{Error, ErrorKind, Result, Retry};
pub use pipeline::{
    ConsumerTotals, Event, EventKind, EventListener, LoopReport, OverviewTotals, PullOutcome,
    PullSettlement, Pulled, PutRates, Settings, Told,
};

/// What only Flare's own tests and benchmarks reach for. It may change with any version.
#[cfg(feature = "internals")]
pub mod internals {
    pub use crate::app::Script;
    pub use crate::cluster::assignment::{Worker, assign};
    pub use crate::cluster::member::ClusterMember;
    #[cfg(feature = "filter")]
    pub use crate::filter::PreparedFilter;
    pub use crate::ownership::{DrainLimit, Released, SlotChange, Slots, Term, Trust};
    pub use crate::pipeline::settings::Shortcuts;
    pub use crate::port::task::{DocumentVersion, Task};
}
