//! One thing to hold: the builder ties ports together, [`Flare`] is the handle a host keeps,
//! [`Runtime`] the work a host lets run. No statics: any number of them live in one process.

mod audit;
mod backend;
mod backfill;
mod backup;
mod builder;
mod cluster;
mod consumers;
mod dead_letters;
mod deliveries;
mod ensure;
mod filters;
mod find;
mod flare;
mod jobs;
mod left;
mod mapping;
mod node;
mod overview;
mod passive;
mod pins;
mod rejects;
mod removal;
mod runtime;
mod runtime_handle;
mod scripted;
mod settled;
mod sharing;
mod status;
mod status_watch;
mod subscriptions;

pub use backend::Backend;
pub use builder::FlareBuilder;
pub use consumers::ConsumerReport;
pub use flare::Flare;
pub use jobs::JobReport;
pub use left::Left;
pub use mapping::TriedDocument;
pub use node::NodeReport;
pub use overview::{OverviewQuery, SubscriptionOverview};
pub use passive::Pull;
pub use rejects::RetriedRejects;
pub use runtime::Runtime;
pub use runtime_handle::RuntimeHandle;
#[cfg(feature = "internals")]
pub use scripted::Script;
pub use status_watch::StatusWatch;
