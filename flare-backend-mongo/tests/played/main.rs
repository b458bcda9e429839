//! The stores beside a server that is played, and so fails and hangs when it is told to.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod errors;
mod places;
mod wire_stub;
