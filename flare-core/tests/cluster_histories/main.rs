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

#[path = "../histories/asked.rs"]
mod asked;
#[path = "../histories/client.rs"]
mod client;
#[path = "../histories/history.rs"]
mod history;
#[path = "../histories/inputs.rs"]
mod inputs;
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
    pool::live_all(HISTORIES, history::run);
}

#[test]
fn those_of_a_cluster_that_once_broke_a_promise_keep_it() {
    pool::live_these(&BROKEN_ONCE, history::run_plain);
}

/// Those in which a more specific resource takes documents over, in an ordinary run.
const OVERLAPPING: u64 = 500;

#[test]
fn documents_that_move_in_a_cluster_keep_their_promises() {
    pool::live_all(OVERLAPPING, history::run_overlapping);
}

/// Those whose documents come from a broker as well, in an ordinary run.
const PULLED: u64 = 300;

#[test]
fn documents_that_a_cluster_pulls_keep_their_promises() {
    pool::live_all(PULLED, history::run_pulled);
}

/// One in which a worker froze inside a spread's write for longer than any task lives: what it wrote at last was
/// pending for ever, as its subscription was gone.
const MOVE_BROKEN_ONCE: [u64; 1] = [579_012_714_720];
/// One whose message waited until the tombstone was forgotten that would have refused it, and one in which a worker
/// that was frozen while its subscription was removed made its queues again and died.
const PULLED_BROKEN_ONCE: [u64; 2] = [985_790_770_182, 872_397_887_309];

#[test]
fn those_of_a_cluster_that_once_seemed_to_break_one_keep_it() {
    pool::live_these(&MOVE_BROKEN_ONCE, history::run_overlapping);
    pool::live_these(&PULLED_BROKEN_ONCE, history::run_pulled);
}
