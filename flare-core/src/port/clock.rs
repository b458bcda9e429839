//! The time, and a way to wait for it. The only place in the core that may
//! ask the system for either.

use std::fmt;
#[cfg(not(target_os = "linux"))]
use std::time::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use crate::model::Timestamp;

/// Time, as a port: with a manual clock a run can be replayed and takes no time at all.
///
/// # Contract
/// - **C1** `now` is the wall clock. It may be set forwards or backwards under our feet.
/// - **C2** `monotonic` never goes backwards and is not moved when the wall clock is set; only
///   differences of it mean anything. Time during which the machine was suspended counts: a lease
///   lapses meanwhile.
/// - **C3** `sleep_until` returns once `now` has reached the deadline, at once if it already has,
///   and never before.
/// - **C4** Dropping a sleep costs nothing and wakes no other.
/// - **C5** `sleep` returns once `monotonic` has moved on by the time given, and never before: setting
///   the wall clock makes it neither longer nor shorter. After the machine was suspended it may be
///   late, so a caller that may only do something within a time asks the clock before doing it.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The wall-clock time.
    fn now(&self) -> Timestamp;

    /// Time since some fixed start, for measuring spans.
    fn monotonic(&self) -> Duration;

    /// Waits until `now()` is at or past `deadline`.
    async fn sleep_until(&self, deadline: Timestamp);

    /// Lets `time` pass by the monotonic clock: what a wait is to use that is no date, such as a
    /// limit, a pause or the keep-alive of a lease.
    async fn sleep(&self, time: Duration);
}

/// The system's clocks, on tokio's timer.
///
/// On Linux `monotonic` is the time since the machine was started, suspended time included. Other
/// systems are asked through [`Instant`](std::time::Instant), which on some of them, as on macOS, stands still while the
/// machine sleeps: there a node that wakes may believe in its lease for up to the lease's time.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Running,
}

/// Longest single sleep, so that a wall clock set forwards is noticed soon.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// The same for a sleep that no clock being set can end, only a machine having been suspended: that is
/// rarer and costs the sleeper less.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// A moment of a clock that goes on while the machine is suspended, where there is one.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
struct Running(Duration);

#[cfg(target_os = "linux")]
impl Running {
    fn now() -> Self {
        // Tokio's timer, like `Instant`, follows CLOCK_MONOTONIC, which stands still meanwhile.
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanos))
    }

    fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

#[cfg(not(target_os = "linux"))]
type Running = Instant;

impl SystemClock {
    /// The clock of this machine.
    #[allow(clippy::disallowed_methods, reason = "this is the port the ban points to")]
    pub fn new() -> Self {
        Self { started: Running::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
#[allow(clippy::disallowed_methods, reason = "this is the port the ban points to")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Before 1970 there is nothing to be right about.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH + since_epoch
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep_until(&self, deadline: Timestamp) {
        loop {
            let left = deadline - self.now();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LONGEST_NAP)).await;
        }
    }

    async fn sleep(&self, time: Duration) {
        // Tokio's timer stands still while the machine is suspended; it is looked at often enough.
        let end = self.monotonic().saturating_add(time);
        loop {
            let left = end.saturating_sub(self.monotonic());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
        }
    }
}

/// A clock that shows the second it was set to, and where no sleep ends.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct At(std::sync::atomic::AtomicU64);

#[cfg(test)]
impl At {
    pub(crate) fn second(second: u64) -> Self {
        Self(second.into())
    }

    pub(crate) fn set(&self, second: u64) {
        self.0.store(second, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
#[async_trait]
impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }

    async fn sleep_until(&self, _: Timestamp) {}

    async fn sleep(&self, _: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn c3_sleeps_until_the_deadline_and_not_less() {
        let clock = SystemClock::new();
        let deadline = clock.now() + Duration::from_millis(20);
        clock.sleep_until(deadline).await;
        assert!(clock.now() >= deadline);
        clock.sleep_until(Timestamp::EPOCH).await;
    }

    #[tokio::test]
    async fn c5_sleeps_as_long_as_it_is_told_to_and_not_less() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        clock.sleep(Duration::from_millis(20)).await;
        assert!(clock.monotonic() - before >= Duration::from_millis(20));
        clock.sleep(Duration::ZERO).await;
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn c2_it_goes_by_the_clock_that_counts_time_since_the_machine_started() {
        let monotonic = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let awake = Duration::from_secs(u64::try_from(monotonic.tv_sec).unwrap());
        assert!(Running::now().0 >= awake, "never less than the time the machine was awake");
        let clock = SystemClock::new();
        let (before, started) = (Running::now().0, clock.monotonic());
        std::thread::yield_now();
        assert!(clock.monotonic() - started <= Running::now().0 - before + Duration::from_secs(1));
    }

    #[test]
    fn c2_monotonic_does_not_go_backwards() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        assert!(clock.monotonic() >= before);
    }
}
