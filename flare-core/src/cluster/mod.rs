//! Takes many Flares on the same stores; gives each of them slots to work, one worker per slot.
//!
//! In the order in which one step needs the other:
//! - [`assign`]: who should work which slot. Pure.

mod assignment;

pub use assignment::{Worker, assign};
