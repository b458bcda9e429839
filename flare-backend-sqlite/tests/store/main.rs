//! What a file does beside the ports: copies of it, its size over time, and what people see in it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it is a test")]

mod backup;
mod growth;
#[path = "../support/mod.rs"]
mod support;
mod views;
