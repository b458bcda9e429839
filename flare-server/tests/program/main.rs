//! The program `flare` on stores in memory and in a file: its command line, its manners with clients, its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "it is a test")]

mod abuse;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod connections;
mod drain;
mod openapi;
mod readme;
mod sqlite;
mod upkeep;
