//! Takes messages of brokers; gives them to ingest as puts and deletes, and tells the broker what became of each.
//!
//! ```text
//! SlotChange ─► set       which consumers this node works: those of its slots, one task each
//!               worker    opens the source, receives, hands over, gives back what it has when it ends
//!               batch     messages ─► changes, in an order that keeps each document's own (pure)
//!               storing   changes ─► ingest, rejects ─► repository, then settles with the broker
//!               tally     what was counted, and how many a second (pure); stored under the owner's epoch
//! states ─► picture         which of all consumers fail, and how far each is behind, on all nodes
//!           worst           figures of the worst of them, for metrics
//! ```
//!
//! A message is settled once what it says is stored, so a node that dies in between has it received again. That is
//! no harm: an equal or older revision changes nothing. What would be harm is a deletion *as of the newest stored*
//! that is made late; it is only begun while the slot is trusted.

mod batch;
mod picture;
mod set;
mod states;
mod storing;
mod tally;
mod worker;
#[cfg(feature = "metrics")]
mod worst;

pub(crate) use batch::MappedBatch;
pub use picture::ConsumerTotals;
pub(crate) use picture::PictureCache;
pub(crate) use set::{Consumers, ConsumersHandle};
pub(crate) use states::read_states;
pub(crate) use storing::refusal;
#[cfg(feature = "metrics")]
pub(crate) use worst::WorstConsumers;

/// Of each consumer so many rejects are kept.
pub(crate) const MAX_REJECTS: usize = 1_000;
