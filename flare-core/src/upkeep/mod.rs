//! Keeping stores in order, in two moves: a [`Plan`] that an operator looks at, and its apply.
//!
//! A [`Backend`](crate::Backend) brings what knows its own stores ([`Upkeep`](crate::port::Upkeep));
//! here is what is the same for all of them. The [`Caretaker`] plans over all parts, and applies
//! what is still planned then; an [`Observer`] follows it, a [`Report`] says what became of each
//! step. [`QueueUpkeep`] keeps the queues of any backend.
//!
//! Never decides *whether* to apply, and keeps nothing in memory between the two moves.

mod caretaker;
mod observer;
mod plan;
mod queues;
mod report;

pub use caretaker::Caretaker;
pub use observer::Observer;
pub use plan::{PartPlan, Plan};
pub use queues::QueueUpkeep;
pub use report::{Report, StepReport, StepResult};
