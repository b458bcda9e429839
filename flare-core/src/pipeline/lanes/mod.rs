//! The lanes a node works: those of the active subscriptions in the slots it is granted. Stops before it
//! starts anew; slots do not wait for each other.
//!
//! - `machine`: what is to be done, decided without await, clock or store; `runner`: does it.
//! - `tasks`: the task of a lane, or of a slot's listener; `listener`: what is said in a queue.
//! - `directory`: the lanes that are worked, and the way to reach each.
//! - `read`: subscriptions as they are stored; `leave`: that one has left a slot; `queues`: that all of
//!   them are there.
//! - `handle`: for changes that come by other ways; `near`: for rows that were written in this process.

mod directory;
mod handle;
mod leave;
mod listener;
mod machine;
mod near;
mod queues;
mod read;
mod runner;
mod tasks;

pub(crate) use self::handle::LanesHandle;
pub(crate) use self::near::{LaneAddress, NearLanes};
pub(crate) use self::runner::Lanes;
