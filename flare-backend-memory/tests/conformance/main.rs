//! The ports in memory keep every clause of their contracts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "it is a test")]

mod lease;
mod queue;
mod repository;
mod source;
mod unreadable;
mod upkeep;
