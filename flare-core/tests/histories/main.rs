//! Seeded histories: whole Flares on one thread, a manual clock and stores that fail, lose, double
//! and forget, dropped and started again at any moment, while somebody pauses, replaces and deletes
//! subscriptions, and clients ask: for backfill, resync, what waits, calm, filters and many documents in one
//! request, each of these by itself and together with the others. In some of them documents come from a broker that
//! redelivers, mixes up and loses connections, too. Each history ends by comparing documents, rows and what the
//! clients saw with what was promised (P1–P8).
//!
//! A failing history prints its seed. Replay it with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-core --test histories -- --nocapture`;
//! run more of them with `FLARE_HISTORIES=<count>`, the same ones again with
//! `FLARE_HISTORIES_FROM=<first>`, which every run prints.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

mod asked;
#[allow(dead_code, reason = "some of it is for the senders of a cluster")]
mod client;
mod history;
mod inputs;
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
    pool::live_all(HISTORIES, history::run);
}

#[test]
fn those_that_once_broke_a_promise_keep_it() {
    pool::live_these(&BROKEN_ONCE, history::run_plain);
}

/// One whose client settled by a receipt that a document is gone, while a newer version that its filter refuses
/// waited since before the lane was taken over: the lane tells of the end once more, rather than be silent. And one
/// whose resync was cancelled just when another runtime took it: it was said that there was none, and it went on.
const ASKED_BROKEN_ONCE: [u64; 2] = [667_157_495_824, 899_040_137_135];

#[test]
fn those_whose_clients_ask_and_that_once_broke_a_promise_keep_it() {
    pool::live_these(&ASKED_BROKEN_ONCE, history::run);
}

/// Those in which a more specific resource takes documents over, in an ordinary run.
const OVERLAPPING: u64 = 2_000;

#[test]
fn documents_that_move_keep_their_promises() {
    pool::live_all(OVERLAPPING, history::run_overlapping);
}

/// Those whose documents come from a broker as well, in an ordinary run.
const PULLED: u64 = 1_000;

#[test]
fn documents_that_are_pulled_keep_their_promises() {
    pool::live_all(PULLED, history::run_pulled);
}

/// Those of them that once broke a promise: messages were lost that waited behind one that could not be stored when
/// their consumer had to stop, and one who had not stopped in time was looked at without end.
const PULLED_BROKEN_ONCE: [u64; 3] = [2_560, 3_661, 3_916];

#[test]
fn those_that_once_lost_a_message_keep_it() {
    pool::live_these(&PULLED_BROKEN_ONCE, history::run_pulled);
}
