//! Takes signs of life from the loops of a runtime; gives what each has been doing, so that one
//! that is stuck shows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::model::Timestamp;

/// Nothing is being worked on.
const IDLE: i64 = i64::MIN;

/// What the loops of one runtime do.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    running: AtomicBool,
    lanes: AtomicUsize,
    loops: Mutex<Vec<(&'static str, Weak<Beat>)>>,
}

/// When one loop got somewhere, and since when it has been at work without getting anywhere.
#[derive(Debug)]
struct Beat {
    last: AtomicI64,
    since: AtomicI64,
}

/// One loop's way of saying what it does; what it does is forgotten when it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Pulse(Arc<Beat>);

impl Pulse {
    /// It has something to do, and is at it.
    pub(crate) fn works(&self, now: Timestamp) {
        let now = now.unix_nanos();
        // Whoever fails and tries again has been at it since it began.
        let _ = self.0.since.compare_exchange(IDLE, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It got somewhere, and has more to do.
    pub(crate) fn advances(&self, now: Timestamp) {
        let now = now.unix_nanos();
        self.0.last.store(now, Ordering::Relaxed);
        self.0.since.store(now, Ordering::Relaxed);
    }

    /// It got somewhere, and has nothing more to do.
    pub(crate) fn rests(&self, now: Timestamp) {
        self.0.last.store(now.unix_nanos(), Ordering::Relaxed);
        self.0.since.store(IDLE, Ordering::Relaxed);
    }
}

impl Progress {
    /// A loop of this name begins; several may share one.
    pub(crate) fn pulse(&self, name: &'static str, now: Timestamp) -> Pulse {
        let beat = Beat { last: AtomicI64::new(now.unix_nanos()), since: AtomicI64::new(IDLE) };
        let beat = Arc::new(beat);
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        // Lanes come and go: what is gone is swept out when the list has to grow.
        if loops.len() == loops.capacity() {
            loops.retain(|(_, beat)| beat.strong_count() > 0);
        }
        loops.push((name, Arc::downgrade(&beat)));
        Pulse(beat)
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

    /// What the loops do, those of one name together.
    pub(crate) fn loops(&self) -> Vec<LoopReport> {
        let mut by_name: BTreeMap<&'static str, LoopReport> = BTreeMap::new();
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, beat) in loops.iter() {
            let Some(beat) = beat.upgrade() else { continue };
            let last = Timestamp::from_unix_nanos(beat.last.load(Ordering::Relaxed));
            let since = beat.since.load(Ordering::Relaxed);
            let since = (since != IDLE).then(|| Timestamp::from_unix_nanos(since));
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

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    #[test]
    fn a_loop_that_has_work_and_gets_nowhere_is_stuck() {
        let progress = Progress::default();
        let (one, other) = (progress.pulse("spread", at(0)), progress.pulse("spread", at(0)));
        let limit = Duration::from_secs(30);
        let stuck = |now| progress.loops().iter().any(|it| it.is_stuck(at(now), limit));
        assert!(!stuck(1_000), "nothing to do is no reason to worry");
        one.works(at(10));
        one.works(at(35));
        assert!(!stuck(39));
        assert!(stuck(40), "since it began, however often it tried");
        other.works(at(38));
        other.rests(at(39));
        assert!(stuck(40), "another one's progress is not its own");
        one.advances(at(41));
        assert!(!stuck(70), "it got somewhere, though it is not done");
        assert!(stuck(71), "and then nowhere");
        one.rests(at(72));
        assert!(!stuck(1_000));
        assert_eq!(progress.loops().len(), 1);
        assert_eq!(progress.loops()[0].last_progress_at, at(72));
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let progress = Progress::default();
        for n in 0..10_000 {
            progress.pulse("lane", at(n)).works(at(n));
        }
        assert_eq!(progress.loops(), []);
        assert!(progress.loops.lock().unwrap().capacity() < 100);
    }
}
