//! Slots that come and go one by one, as a cluster will have it: a whole Flare on memory and
//! simulated time, told by a script which slots are its own.

mod handover;
mod node;
mod placement;
