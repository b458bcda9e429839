//! Takes what operators and nodes do, as it is done; gives it to the store afterwards, bounded: by the room for
//! what waits, by the number of tries, and by what is kept. Whatever tells of an operation never waits for it.
//!
//! - [`AuditLog`]: what an operation tells, and what waits to be stored.
//! - `refusals`: many refused sign-ins as one entry.

mod log;
mod refusals;

pub(crate) use log::{AuditBounds, AuditLog};
