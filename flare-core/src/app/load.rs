//! Takes what a runtime does; gives the cluster this node's load. Measures nothing of the system: only
//! what is the same everywhere, costs next to nothing and can be simulated.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::{ClusterHandle, NodeLoad};
use crate::pipeline::context::Context;

/// Looks for each figure that is told.
const LOOKS: u32 = 5;
/// However often it is told, looking costs next to nothing.
const SHORTEST: Duration = Duration::from_millis(100);
/// A runtime whose timers ring this much too late has no time left for anything.
const MUCH_TOO_LATE: Duration = Duration::from_millis(100);
/// Changes no larger than this, or than a quarter, are not worth telling.
const SMALL: u64 = 4;

/// Says every `every` how busy this node was since, until dropped.
///
/// Busy is the greatest of three parts: of the places for requests, of those for young ones (which keep
/// the processor at work), and how late the timers ring. Each is 100 % when there is nothing left, so it
/// says *overloaded* whether clients are slow, there is too much to do, or the machine is not there.
pub(super) async fn publish_load(handle: ClusterHandle, context: Arc<Context>, every: Duration) {
    let look_every = (every / LOOKS).max(SHORTEST);
    let mut told = NodeLoad::default();
    loop {
        let mut sum = Sum::default();
        for _ in 0..LOOKS {
            let before = context.clock.monotonic();
            context.sleep(look_every).await;
            let took = context.clock.monotonic().saturating_sub(before);
            let usage = context.places.usage();
            let late = lateness(took.saturating_sub(look_every));
            sum.add(usage.in_flight, usage.percent.max(late));
        }
        let load = sum.load(context.progress.lanes() as u64);
        if is_news(&load, &told) {
            told = load;
            handle.set_load(load);
        }
    }
}

fn lateness(late: Duration) -> u64 {
    let percent = late.as_millis() * 100 / MUCH_TOO_LATE.as_millis();
    u64::try_from(percent).unwrap_or(100).min(100)
}

/// What was seen in a few looks.
#[derive(Default)]
struct Sum {
    in_flight: u64,
    busy: u64,
}

impl Sum {
    fn add(&mut self, in_flight: u64, busy: u64) {
        self.in_flight += in_flight;
        self.busy += busy;
    }

    fn load(&self, lanes: u64) -> NodeLoad {
        let mean = |sum: u64| sum.div_ceil(u64::from(LOOKS));
        NodeLoad::new(lanes, mean(self.in_flight), mean(self.busy))
    }
}

/// Whether it differs by more than figures do while nothing changes: telling is a write.
fn is_news(load: &NodeLoad, told: &NodeLoad) -> bool {
    let differs = |now: u64, before: u64| now.abs_diff(before) > SMALL.max(before / 4);
    load.lanes != told.lanes
        || differs(load.in_flight, told.in_flight)
        || differs(load.busy_percent, told.busy_percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_are_not_told() {
        let told = NodeLoad::new(7, 40, 20);
        let news = |lanes, in_flight, busy| is_news(&NodeLoad::new(lanes, in_flight, busy), &told);
        assert!(!news(7, 40, 20) && !news(7, 50, 16) && !news(7, 30, 25));
        assert!(news(8, 40, 20) && news(7, 51, 20) && news(7, 40, 26) && news(7, 0, 20));
        assert!(is_news(&told, &NodeLoad::default()) && is_news(&NodeLoad::default(), &told));
    }

    #[test]
    fn timers_that_ring_late_are_load() {
        let percent = [0, 1, 45, 100, 60_000].map(|millis| lateness(Duration::from_millis(millis)));
        assert_eq!(percent, [0, 1, 45, 100, 100]);
        assert_eq!(lateness(Duration::MAX), 100);
    }

    #[test]
    fn looks_are_averaged() {
        let mut sum = Sum::default();
        for (in_flight, busy) in [(10, 100), (0, 0), (0, 0), (0, 0), (0, 0)] {
            sum.add(in_flight, busy);
        }
        assert_eq!(sum.load(3), NodeLoad::new(3, 2, 20));
    }
}
