//! The ports in a file keep every clause of their contracts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "it is a test")]

mod lease;
mod queue;
mod repository;
#[path = "../support/mod.rs"]
mod support;
mod unreadable;
mod upkeep;
