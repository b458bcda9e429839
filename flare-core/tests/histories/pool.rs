//! Takes a number of histories; lives them on all processors, and tells which of them broke a promise.
//! Others each time, or those that are named.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where an ordinary run may begin: numbers that a person can read and write.
const BEGINNINGS: u64 = 1_000_000_000_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Lives the one that is asked for; else as many as are asked for, or an ordinary number of them, from
/// where it is asked for, or anywhere. `live` is told whether to say what happens.
pub(crate) fn live_all(ordinary: u64, live: impl Fn(u64, bool) + Sync) {
    let count = number("FLARE_HISTORIES").unwrap_or(ordinary);
    let from = number("FLARE_HISTORIES_FROM").unwrap_or_else(|| fastrand::u64(..BEGINNINGS));
    // Past the test harness, which keeps what tests print: a run that hangs or is killed has said it.
    let (program, test) = (env!("CARGO_CRATE_NAME"), test());
    let _ = writeln!(
        std::io::stderr(),
        "{program} {test}: {count} from FLARE_HISTORIES_FROM={from} on"
    );
    live_these(&(from..from + count).collect::<Vec<u64>>(), live);
}

/// The test that runs: its thread is named after it, but where all run on the first thread of the program.
fn test() -> String {
    let thread = std::thread::current();
    thread.name().filter(|name| *name != "main").unwrap_or_default().to_owned()
}

/// Lives the one that is asked for, else all of these.
pub(crate) fn live_these(seeds: &[u64], live: impl Fn(u64, bool) + Sync) {
    if let Some(seed) = number("FLARE_HISTORY_SEED") {
        return live(seed, true);
    }
    let next = AtomicUsize::new(0);
    let failed: Mutex<Vec<u64>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if failed.lock().unwrap().len() >= 5 {
                        return;
                    }
                    if catch_unwind(AssertUnwindSafe(|| live(*seed, false))).is_err() {
                        failed.lock().unwrap().push(*seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "histories {failed:?} broke a promise; replay one with \
         FLARE_HISTORY_SEED={} cargo test -p {} --test {} -- {} --nocapture",
        failed[0],
        env!("CARGO_PKG_NAME"),
        env!("CARGO_CRATE_NAME"),
        test(),
    );
}
