//! Slots that come and go one by one, as a cluster will have it: a whole Flare on memory and
//! simulated time, told by a script which slots are its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "it is a test")]

mod handover;
mod node;
mod placement;
