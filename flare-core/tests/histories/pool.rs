//! Takes a number of histories; lives them on all processors, and tells which of them broke a promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::history;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Lives the one that is asked for, else as many as are asked for, or an ordinary number of them.
pub(crate) fn live_all(ordinary: u64, test: &str) {
    if let Some(seed) = number("FLARE_HISTORY_SEED") {
        return history::run(seed, true);
    }
    let count = number("FLARE_HISTORIES").unwrap_or(ordinary);
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
         FLARE_HISTORY_SEED={} cargo test -p flare-core --test {test} -- --nocapture",
        failed[0]
    );
}
