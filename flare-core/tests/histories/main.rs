//! Seeded histories: whole Flares on one thread, a manual clock and stores that fail, lose, double
//! and forget, dropped and started again at any moment, while somebody pauses, replaces and deletes
//! subscriptions. Each history ends by comparing documents, rows and what the clients saw with what
//! was promised (P1–P5, P7, P8).
//!
//! A failing history prints its seed. Replay it with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-core --test histories -- --nocapture`;
//! run more of them with `FLARE_HISTORIES=<count>`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

mod client;
mod history;
mod meddle;
mod plan;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Histories in an ordinary run.
const HISTORIES: u64 = 10_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

#[test]
fn every_history_keeps_its_promises() {
    if let Some(seed) = number("FLARE_HISTORY_SEED") {
        return history::run(seed, true);
    }
    let count = number("FLARE_HISTORIES").unwrap_or(HISTORIES);
    let next = AtomicU64::new(0);
    let failed: Mutex<Vec<u64>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count || failed.lock().unwrap().len() >= 5 {
                        return;
                    }
                    if catch_unwind(AssertUnwindSafe(|| history::run(seed, false))).is_err() {
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "histories {failed:?} broke a promise; replay one with \
         FLARE_HISTORY_SEED={} cargo test -p flare-core --test histories -- --nocapture",
        failed[0]
    );
}
