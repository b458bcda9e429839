//! The doubles do what they say: clocks, faults, far stores, counts and an order of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it is a test")]

mod clock;
mod counting_repository;
mod far_repository;
mod faults;
mod faulty_repository;
mod intercept;
mod memory_repository;
mod ordered_queue;
