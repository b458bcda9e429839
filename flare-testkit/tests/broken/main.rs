//! The suites are tried themselves: a port with one fault fails exactly the clauses it breaks, an honest
//! one none, and every clause of a contract has a trial.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it is a test")]

mod broken_repository;
mod delivery;
mod every_clause;
mod http;
mod lease;
#[path = "../doubles/memory_repository.rs"]
mod memory_repository;
mod queue;
mod repository;
mod source;
mod support;
mod unreadable;
mod upkeep;
