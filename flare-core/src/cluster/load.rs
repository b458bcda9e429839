//! How busy a node is, told to the cluster. Measures nothing of the system: only what is the same
//! everywhere, costs next to nothing and can be simulated.

use std::time::Duration;

use tokio::sync::watch;

use super::context::NodeContext;
use super::record::NodeLoad;
use super::registry::Facts;

/// Looks for each figure that is told.
const LOOKS: u32 = 5;
/// However often it is told, looking costs next to nothing.
const SHORTEST: Duration = Duration::from_millis(100);
/// A runtime whose timers ring this much too late has no time left for anything.
const MUCH_TOO_LATE: Duration = Duration::from_millis(100);
/// Changes no larger than this, or than a quarter, are not worth telling.
const SMALL: u64 = 4;

/// What a node is at, as the host's runtime says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Activity {
    /// Lanes it works.
    pub(crate) lanes: u64,
    /// Consumers it works.
    pub(crate) consumers: u64,
    /// Requests in flight.
    pub(crate) in_flight: u64,
    /// How much is taken of what it can do.
    pub(crate) percent: u64,
}

/// Tells what a node is at.
pub(crate) type Gauge = Box<dyn Fn() -> Activity + Send + Sync>;

/// Says now and then how busy this node was since, until dropped.
///
/// Busy is the greatest of three parts: of the places for requests, of those for young ones (which keep
/// the processor at work), and how late the timers ring. Each is 100 % when there is nothing left, so it
/// says *overloaded* whether clients are slow, there is too much to do, or the machine is not there.
pub(crate) async fn publish_load(
    context: &NodeContext,
    gauge: Option<&Gauge>,
    facts: &watch::Sender<Facts>,
) {
    let Some(gauge) = gauge else { return std::future::pending().await };
    let look_every = (context.settings.publish_every / LOOKS).max(SHORTEST);
    let mut told = NodeLoad::default();
    loop {
        let (mut sum, mut lanes, mut consumers) = (Sum::default(), 0, 0);
        for _ in 0..LOOKS {
            let before = context.monotonic();
            context.sleep(look_every).await;
            let took = context.monotonic().saturating_sub(before);
            let seen = gauge();
            let late = lateness(took.saturating_sub(look_every));
            sum.add(seen.in_flight, seen.percent.max(late));
            (lanes, consumers) = (seen.lanes, seen.consumers);
        }
        let load = sum.load(lanes).consumers(consumers);
        if is_worth_telling(&load, &told) {
            told = load;
            facts.send_if_modified(|facts| std::mem::replace(&mut facts.load, load) != load);
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
fn is_worth_telling(load: &NodeLoad, told: &NodeLoad) -> bool {
    let differs = |now: u64, before: u64| now.abs_diff(before) > SMALL.max(before / 4);
    (load.lanes, load.consumers) != (told.lanes, told.consumers)
        || differs(load.in_flight, told.in_flight)
        || differs(load.busy_percent, told.busy_percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_are_not_told() {
        let told = NodeLoad::new(7, 40, 20);
        let told_anew = |lanes, in_flight, busy| {
            is_worth_telling(&NodeLoad::new(lanes, in_flight, busy), &told)
        };
        assert!(!told_anew(7, 40, 20) && !told_anew(7, 50, 16) && !told_anew(7, 30, 25));
        assert!(
            told_anew(8, 40, 20)
                && told_anew(7, 51, 20)
                && told_anew(7, 40, 26)
                && told_anew(7, 0, 20)
                && is_worth_telling(&told.consumers(1), &told)
        );
        assert!(
            is_worth_telling(&told, &NodeLoad::default())
                && is_worth_telling(&NodeLoad::default(), &told)
        );
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
