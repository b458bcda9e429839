//! Seeded histories of two to four whole Flares that share the lanes as a cluster, in one thread on a
//! manual clock, on stores that fail, delay, lose, double and forget. Nodes join, leave, die, freeze
//! beyond their lease and are cut off from each other, while somebody puts documents and pauses,
//! replaces and deletes subscriptions. What has to hold is what holds for one Flare (P1–P5, P7, P8:
//! `tests/histories`), and that a request comes only from the node that works its slot (P6).
//!
//! A failing history prints its seed. Replay it with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-core --test cluster_histories -- --nocapture`;
//! run more of them with `FLARE_HISTORIES=<count>`, the same ones again with
//! `FLARE_HISTORIES_FROM=<first>`, which every run prints.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

#[path = "../histories/client.rs"]
mod client;
#[path = "../histories/history.rs"]
mod history;
#[path = "../histories/known.rs"]
mod known;
#[path = "../histories/meddle.rs"]
mod meddle;
#[path = "../cluster/sharing/node.rs"]
mod node;
#[path = "../cluster/sharing/observed.rs"]
mod observed;
#[path = "../histories/plan.rs"]
mod plan;
#[path = "../histories/pool.rs"]
mod pool;
#[path = "../histories/pulling.rs"]
mod pulling;
mod runs;
#[path = "../histories/shift.rs"]
mod shift;
#[path = "../cluster/stores.rs"]
mod stores;
#[path = "../histories/wishes.rs"]
mod wishes;

/// Histories in an ordinary run.
const HISTORIES: u64 = 5_000;

/// Those that once broke a promise. In this one a lane with a rate, whose slot was not trusted any
/// more, turned for ever without waiting.
const BROKEN_ONCE: [u64; 3] = [3_406, 24_076, 57_505];

#[test]
fn every_history_of_a_cluster_keeps_its_promises() {
    pool::live_all(HISTORIES, "cluster_histories every", history::run);
}

#[test]
fn those_of_a_cluster_that_once_broke_a_promise_keep_it() {
    pool::live_these(&BROKEN_ONCE, "cluster_histories once", history::run_plain);
}

/// Those in which a more specific resource takes documents over, in an ordinary run.
const OVERLAPPING: u64 = 500;

#[test]
fn documents_that_move_in_a_cluster_keep_their_promises() {
    pool::live_all(OVERLAPPING, "cluster_histories move", history::run_overlapping);
}
