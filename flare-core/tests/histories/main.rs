//! Seeded histories: whole Flares on one thread, a manual clock and stores that fail, lose, double
//! and forget, dropped and started again at any moment, while somebody pauses, replaces and deletes
//! subscriptions, and clients ask: for backfill, resync, what waits, calm, filters and many documents in one
//! request. Each history ends by comparing documents, rows and what the clients saw with what
//! was promised (P1–P8).
//!
//! A failing history prints its seed. Replay it with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-core --test histories -- --nocapture`;
//! run more of them with `FLARE_HISTORIES=<count>`, the same ones again with
//! `FLARE_HISTORIES_FROM=<first>`, which every run prints.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

#[allow(dead_code, reason = "some of it is for the senders of a cluster")]
mod client;
mod history;
mod known;
mod meddle;
#[path = "../cluster/sharing/observed.rs"]
mod observed;
mod plan;
mod pool;
mod pulling;
mod runs;
mod shift;
mod wishes;

/// Histories in an ordinary run.
const HISTORIES: u64 = 10_000;

/// Those that once broke a promise. All of them left something of a deleted subscription behind.
const BROKEN_ONCE: [u64; 14] = [
    17_769, 28_498, 38_153, 43_151, 61_008, 61_213, 77_701, 78_464, 103_952, 130_949, 146_894,
    158_866, 235_722, 259_059,
];

#[test]
fn every_history_keeps_its_promises() {
    pool::live_all(HISTORIES, "histories every", history::run);
}

#[test]
fn those_that_once_broke_a_promise_keep_it() {
    pool::live_these(&BROKEN_ONCE, "histories once", history::run_plain);
}

/// Those in which a more specific resource takes documents over, in an ordinary run.
const OVERLAPPING: u64 = 2_000;

#[test]
fn documents_that_move_keep_their_promises() {
    pool::live_all(OVERLAPPING, "histories move", history::run_overlapping);
}
