//! What the benches and the checked claims share: a small world of documents, how to measure, and
//! the runs that attack Flare.

#![allow(clippy::print_stdout, reason = "runs show what they find")]

pub mod attack;
pub mod measure;
pub mod world;
