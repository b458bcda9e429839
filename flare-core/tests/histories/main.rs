//! Seeded histories: whole Flares on one thread, a manual clock and stores that fail, lose, double
//! and forget, dropped and started again at any moment, while somebody pauses, replaces and deletes
//! subscriptions. Each history ends by comparing documents, rows and what the clients saw with what
//! was promised (P1–P8).
//!
//! A failing history prints its seed. Replay it with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-core --test histories -- --nocapture`;
//! run more of them with `FLARE_HISTORIES=<count>`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

#[allow(dead_code, reason = "some of it is for the senders of a cluster")]
mod client;
mod history;
mod known;
mod meddle;
mod plan;
mod pool;
mod runs;

/// Histories in an ordinary run.
const HISTORIES: u64 = 10_000;

#[test]
fn every_history_keeps_its_promises() {
    pool::live_all(HISTORIES, "histories");
}
