//! The histories of a cluster on a file: the same seeded lives of two to four whole Flares
//! (`flare-core/tests/cluster_histories`), each with a tokio runtime of its own, with the stores of one file where
//! core's own have memory.
//!
//! Replay one with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-backend-sqlite --test cluster_histories -- --nocapture`; run more
//! of them with `FLARE_HISTORIES=<count>`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

extern crate self as flare_backend_memory;

#[path = "../../../flare-core/tests/histories/asked.rs"]
mod asked;
#[path = "../../../flare-core/tests/histories/client.rs"]
mod client;
#[path = "../histories/file.rs"]
mod file;
#[allow(dead_code, reason = "some of it is for those that once broke a promise")]
#[path = "../../../flare-core/tests/histories/history.rs"]
mod history;
#[path = "../../../flare-core/tests/histories/inputs.rs"]
mod inputs;
#[path = "../../../flare-core/tests/histories/known.rs"]
mod known;
#[path = "../../../flare-core/tests/histories/meddle.rs"]
mod meddle;
#[path = "../../../flare-core/tests/cluster/sharing/node.rs"]
mod node;
#[path = "../../../flare-core/tests/cluster/sharing/observed.rs"]
mod observed;
#[path = "../histories/outage.rs"]
mod outage;
#[path = "../../../flare-core/tests/histories/plan.rs"]
mod plan;
#[allow(dead_code, reason = "some of it is for those that once broke a promise")]
#[path = "../../../flare-core/tests/histories/pool.rs"]
mod pool;
#[path = "../../../flare-core/tests/histories/pulling.rs"]
mod pulling;
#[path = "../../../flare-core/tests/cluster_histories/runs.rs"]
mod runs;
#[path = "../../../flare-core/tests/histories/shift.rs"]
mod shift;
#[path = "../../../flare-core/tests/cluster/stores.rs"]
mod stores;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../flare-core/tests/histories/wishes.rs"]
mod wishes;

pub(crate) use file::MemoryBackend;
pub(crate) use memory_broker::MemoryBroker;

/// Histories in an ordinary run.
const HISTORIES: u64 = 200;
/// Those in which a more specific resource takes documents over.
const OVERLAPPING: u64 = 50;
/// Those whose machine, which all of the nodes are on, loses its power.
const OUTAGES: u64 = 50;
/// Those whose documents come from a broker as well.
const PULLED: u64 = 40;

#[test]
fn every_history_of_a_cluster_on_a_file_keeps_its_promises() {
    pool::live_all(HISTORIES, history::run);
}

#[test]
fn documents_that_move_in_a_cluster_on_a_file_keep_their_promises() {
    pool::live_all(OVERLAPPING, history::run_overlapping);
}

#[test]
fn nodes_whose_machine_loses_its_power_keep_their_promises() {
    pool::live_all(OUTAGES, outage::run);
}

#[test]
fn documents_that_a_cluster_on_a_file_pulls_keep_their_promises() {
    pool::live_all(PULLED, history::run_pulled);
}
