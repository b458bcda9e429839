//! What a file does beside the ports: copies of it, its size over time, what people see in it, and what cannot be
//! read.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it is a test, and the threads of a file work in real time"
)]

mod backup;
mod consumers;
mod growth;
mod migrations;
#[path = "../support/mod.rs"]
mod support;
mod views;
