//! The stages between a put and its rows under load: what is written, how much waits, whether it is
//! told that the node works, and who waits for whom. Simulated time, one thread, memory behind a
//! store that is slow or stands still.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "it is a test")]

mod collapse;
mod fairness;
mod ready;
mod world;
