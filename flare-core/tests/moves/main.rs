//! A document that several resources match: where it is found, where it moves, and who is told.
//! Every order of puts, deletes, and creations and deletions of resources beside a small model;
//! every way two of them can meet; and a crash at every call of the store in between.

#![allow(clippy::unwrap_used, clippy::panic, reason = "it is a test")]

mod crash;
mod model;
mod races;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod world;
