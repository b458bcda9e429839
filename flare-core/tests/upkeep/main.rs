//! Stores kept in order: how plans are applied, and the queues of any backend.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod apply;
mod placed;
mod queues;
mod worlds;
