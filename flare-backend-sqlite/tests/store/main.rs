//! What a file does beside the ports: copies of it, its size over time, and what people see in it.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it is a test, and the threads of a file work in real time"
)]

mod backup;
mod growth;
#[path = "../support/mod.rs"]
mod support;
mod views;
