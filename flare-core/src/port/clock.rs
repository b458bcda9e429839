//! Takes nothing; gives the time and a way to wait for it. The only place in the core that may
//! ask the system for either.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use crate::model::Timestamp;

/// Time, as a port: with a manual clock a run can be replayed and takes no time at all.
///
/// # Contract
/// - **C1** `now` is the wall clock. It may be set forwards or backwards under our feet.
/// - **C2** `monotonic` never goes backwards and is not moved when the wall clock is set; only
///   differences of it mean anything.
/// - **C3** `sleep_until` returns once `now` has reached the deadline, at once if it already has,
///   and never before.
/// - **C4** Dropping a sleep costs nothing and wakes nobody.
/// - **C5** `sleep` returns once `monotonic` has moved on by the time given, and never before: setting
///   the wall clock makes it neither longer nor shorter.
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
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
}

/// Longest single sleep, so that a wall clock set forwards is noticed soon.
const LONGEST_NAP: Duration = Duration::from_secs(1);

impl SystemClock {
    /// The clock of this machine.
    #[allow(clippy::disallowed_methods, reason = "this is the port the ban points to")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
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
        // Tokio's timer follows the same monotonic clock.
        tokio::time::sleep(time).await;
    }
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

    #[test]
    fn c2_monotonic_does_not_go_backwards() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        assert!(clock.monotonic() >= before);
    }
}
