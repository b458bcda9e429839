//! The histories of core on a file: the same seeded lives of whole Flares (`flare-core/tests/histories`), with
//! the file's stores where core's own have memory.
//!
//! They name their store `flare_backend_memory::MemoryBackend`; here that is [`MemoryBackend`], a file in a
//! directory of its own. Replay one with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-backend-sqlite --test histories -- --nocapture`; run more of
//! them with `FLARE_HISTORIES=<count>`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

extern crate self as flare_backend_memory;

#[path = "../../../flare-core/tests/histories/asked.rs"]
mod asked;
#[allow(dead_code, reason = "some of it is for the senders of a cluster")]
#[path = "../../../flare-core/tests/histories/client.rs"]
mod client;
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
#[path = "../../../flare-core/tests/cluster/sharing/observed.rs"]
mod observed;
mod outage;
#[path = "../../../flare-core/tests/histories/plan.rs"]
mod plan;
#[allow(dead_code, reason = "some of it is for those that once broke a promise")]
#[path = "../../../flare-core/tests/histories/pool.rs"]
mod pool;
#[path = "../../../flare-core/tests/histories/pulling.rs"]
mod pulling;
#[path = "../../../flare-core/tests/histories/runs.rs"]
mod runs;
#[path = "../../../flare-core/tests/histories/shift.rs"]
mod shift;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../flare-core/tests/histories/wishes.rs"]
mod wishes;

pub(crate) use file::MemoryBackend;
pub(crate) use memory_broker::MemoryBroker;

/// Histories in an ordinary run.
const HISTORIES: u64 = 300;
/// Those in which a more specific resource takes documents over.
const OVERLAPPING: u64 = 100;
/// Those whose machine loses its power.
const OUTAGES: u64 = 60;
/// Those whose documents come from a broker as well.
const PULLED: u64 = 60;

#[test]
fn every_history_on_a_file_keeps_its_promises() {
    pool::live_all(HISTORIES, history::run);
}

#[test]
fn documents_that_move_on_a_file_keep_their_promises() {
    pool::live_all(OVERLAPPING, history::run_overlapping);
}

#[test]
fn a_machine_that_loses_its_power_keeps_its_promises() {
    pool::live_all(OUTAGES, outage::run);
}

#[test]
fn documents_that_are_pulled_on_a_file_keep_their_promises() {
    pool::live_all(PULLED, history::run_pulled);
}
