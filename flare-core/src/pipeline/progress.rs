//! Takes signs of life from the loops of a runtime; gives what each has been doing, so that one
//! that is stuck shows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::model::Timestamp;
use crate::port::Clock;
use crate::tools::lock;

/// Nothing is being worked on.
const IDLE: u64 = u64::MAX;

/// What the loops of one runtime do.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    running: AtomicBool,
    lanes: AtomicUsize,
    consumers: AtomicUsize,
    loops: Mutex<Vec<(&'static str, Weak<Beat>)>>,
}

/// When one loop got somewhere, and since when it has been at work without getting anywhere, by the
/// monotonic clock.
#[derive(Debug)]
struct Beat {
    last: AtomicU64,
    since: AtomicU64,
}

/// One loop's way of saying what it does; what it does is forgotten when it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Pulse {
    beat: Arc<Beat>,
    clock: Arc<dyn Clock>,
}

impl Pulse {
    /// It has something to do, and is at it.
    pub(crate) fn works(&self) {
        // A loop that fails and tries again has been at it since it began.
        let (since, now) = (&self.beat.since, nanos(self.clock.monotonic()));
        let _ = since.compare_exchange(IDLE, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It got somewhere, and has more to do.
    pub(crate) fn advances(&self) {
        let now = nanos(self.clock.monotonic());
        self.beat.last.store(now, Ordering::Relaxed);
        self.beat.since.store(now, Ordering::Relaxed);
    }

    /// It got somewhere, and has nothing more to do.
    pub(crate) fn rests(&self) {
        self.beat.last.store(nanos(self.clock.monotonic()), Ordering::Relaxed);
        self.beat.since.store(IDLE, Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(IDLE - 1)
}

impl Progress {
    /// A loop of this name begins; several may share one.
    pub(crate) fn pulse(&self, name: &'static str, clock: &Arc<dyn Clock>) -> Pulse {
        let (last, since) = (AtomicU64::new(nanos(clock.monotonic())), AtomicU64::new(IDLE));
        let beat = Arc::new(Beat { last, since });
        let mut loops = lock(&self.loops);
        // Lanes come and go: what is gone is swept out when the list has to grow.
        if loops.len() == loops.capacity() {
            loops.retain(|(_, beat)| beat.strong_count() > 0);
        }
        loops.push((name, Arc::downgrade(&beat)));
        Pulse { beat, clock: Arc::clone(clock) }
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Release);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub(crate) fn set_lanes(&self, lanes: usize) {
        self.lanes.store(lanes, Ordering::Relaxed);
    }

    pub(crate) fn lanes(&self) -> usize {
        self.lanes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_consumers(&self, consumers: usize) {
        self.consumers.store(consumers, Ordering::Relaxed);
    }

    pub(crate) fn consumers(&self) -> usize {
        self.consumers.load(Ordering::Relaxed)
    }

    /// What the loops do, those of one name together; what is `monotonic` there is `now`.
    pub(crate) fn loops(&self, monotonic: Duration, now: Timestamp) -> Vec<LoopReport> {
        let at = |nanos| now - monotonic.saturating_sub(Duration::from_nanos(nanos));
        let mut by_name: BTreeMap<&'static str, LoopReport> = BTreeMap::new();
        let loops = lock(&self.loops);
        for (name, beat) in loops.iter() {
            let Some(beat) = beat.upgrade() else { continue };
            let last = at(beat.last.load(Ordering::Relaxed));
            let since = beat.since.load(Ordering::Relaxed);
            let since = (since != IDLE).then(|| at(since));
            let report = by_name.entry(name).or_insert(LoopReport {
                name,
                last_progress_at: last,
                working_since: None,
            });
            report.last_progress_at = report.last_progress_at.max(last);
            report.working_since = match (report.working_since, since) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        by_name.into_values().collect()
    }
}

/// What one kind of loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopReport {
    /// Which kind.
    pub name: &'static str,
    /// When one of them last got somewhere.
    pub last_progress_at: Timestamp,
    /// Since when the one that has been at it for longest has something to do and got nowhere with
    /// it; `None` if none has anything to do.
    pub working_since: Option<Timestamp>,
}

impl LoopReport {
    /// Whether it has had something to do for `limit` without getting anywhere.
    pub fn is_stuck(&self, now: Timestamp, limit: Duration) -> bool {
        self.working_since.is_some_and(|since| now - since >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::clock::At;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    #[test]
    fn a_loop_that_has_work_and_gets_nowhere_is_stuck() {
        let (progress, hand) = (Progress::default(), Arc::new(At::default()));
        let clock: Arc<dyn Clock> = hand.clone();
        let (one, other) = (progress.pulse("spread", &clock), progress.pulse("spread", &clock));
        let limit = Duration::from_secs(30);
        let loops =
            |now| progress.loops(Duration::from_secs(now), at(1_000) + Duration::from_secs(now));
        let stuck = |now| {
            let shown = at(1_000) + Duration::from_secs(now);
            loops(now).iter().any(|it| it.is_stuck(shown, limit))
        };
        assert!(!stuck(1_000), "nothing to do is no reason to worry");
        hand.set(10);
        one.works();
        hand.set(35);
        one.works();
        assert!(!stuck(39));
        assert!(stuck(40), "since it began, however often it tried");
        hand.set(38);
        other.works();
        hand.set(39);
        other.rests();
        assert!(stuck(40), "another one's progress is not its own");
        hand.set(41);
        one.advances();
        assert!(!stuck(70), "it got somewhere, though it is not done");
        assert!(stuck(71), "and then nowhere");
        hand.set(72);
        one.rests();
        assert!(!stuck(1_000));
        assert_eq!(loops(80).len(), 1);
        assert_eq!(loops(80)[0].last_progress_at, at(1_072));
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let progress = Progress::default();
        let clock: Arc<dyn Clock> = Arc::new(At::default());
        for _ in 0..10_000 {
            progress.pulse("lane", &clock).works();
        }
        assert_eq!(progress.loops(Duration::ZERO, at(0)), []);
        assert!(progress.loops.lock().unwrap().capacity() < 100);
    }
}
