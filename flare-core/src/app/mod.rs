//! One thing to hold: the builder ties ports together, [`Flare`] is the handle a host keeps,
//! [`Runtime`] the work a host lets run. No statics: any number of them live in one process.

mod backend;
mod backfill;
mod backup;
mod builder;
mod cluster;
mod dead_letters;
mod deliveries;
mod ensure;
mod filters;
mod find;
mod flare;
mod left;
mod node;
mod passive;
mod pins;
mod removal;
mod runtime;
mod runtime_handle;
mod scripted;
mod settled;
mod sharing;
mod status;
mod subscriptions;

pub use backend::Backend;
pub use builder::FlareBuilder;
pub use flare::Flare;
pub use left::Left;
pub use node::NodeReport;
pub use passive::Pull;
pub use runtime::Runtime;
pub use runtime_handle::RuntimeHandle;
#[doc(hidden)]
pub use scripted::Script;
