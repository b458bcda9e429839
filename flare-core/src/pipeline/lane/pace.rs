//! Takes how many requests a client allows in which time; gives when the next one may go. Pure.

use crate::model::Timestamp;
use crate::model::subscription::Rate;

/// The pace of one lane: its share of the subscription's rate.
///
/// Requests are due one interval after the other; a lane that fell behind, or was idle, may catch
/// up by a burst's worth and no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pace {
    rate: Rate,
    lanes: u16,
    interval: i64,
    burst: i64,
    /// When the next request would be due if none ever waited.
    due: i64,
}

impl Pace {
    /// The pace of one of `lanes` lanes that share `rate`.
    pub(super) fn new(rate: Rate, lanes: u16) -> Self {
        let share = u128::from(lanes.max(1));
        let interval = (rate.period().as_nanos() * share).div_ceil(u128::from(rate.limit()));
        let burst = (u128::from(rate.burst()) / share).max(1);
        // A century is as good as for ever, and leaves room to calculate with.
        let bounded = |nanos: u128| i64::try_from(nanos).unwrap_or(i64::MAX).min(i64::MAX / 4);
        let interval = bounded(interval);
        let burst = bounded(burst * u128::from(interval.unsigned_abs()));
        Self { rate, lanes, interval, burst, due: i64::MIN / 4 }
    }

    /// Whether it is the pace of this share of this rate.
    pub(super) fn is_of(&self, rate: Rate, lanes: u16) -> bool {
        (self.rate, self.lanes) == (rate, lanes)
    }

    /// When the next request may go.
    pub(super) fn next(&self, now: Timestamp) -> Timestamp {
        // A clock that was set back must not stop the lane for longer than its burst.
        let due = self.due.min(now.unix_nanos().saturating_add(self.burst));
        Timestamp::from_unix_nanos(due.saturating_sub(self.burst - self.interval))
    }

    /// Counts a request that goes now.
    pub(super) fn take(&mut self, now: Timestamp) {
        let now = now.unix_nanos();
        let due = self.due.clamp(now, now.saturating_add(self.burst));
        self.due = due.saturating_add(self.interval);
    }

    /// How many requests go within a time, at most.
    pub(super) fn within(&self, time: std::time::Duration) -> usize {
        let nanos = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 4);
        let requests = self.burst.saturating_add(nanos) / self.interval.max(1);
        usize::try_from(requests).unwrap_or(usize::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp::from_unix_seconds(1_000);

    fn pace(limit: u32, period: Duration, lanes: u16) -> Pace {
        Pace::new(Rate::new(limit, period).unwrap(), lanes)
    }

    /// When requests go that are all waiting from the start.
    fn departures(pace: &mut Pace, count: usize) -> Vec<Duration> {
        let mut now = START;
        let mut gone = Vec::new();
        for _ in 0..count {
            now = now.max(pace.next(now));
            pace.take(now);
            gone.push(now - START);
        }
        gone
    }

    #[test]
    fn fifty_a_second_begin_with_a_burst_of_five_and_go_on_every_twenty_milliseconds() {
        let gone = departures(&mut pace(50, Duration::from_secs(1), 1), 8);
        let millis: Vec<u128> = gone.iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [0, 0, 0, 0, 0, 20, 40, 60]);
    }

    #[test]
    fn a_slow_rate_has_no_burst() {
        let gone = departures(&mut pace(1, Duration::from_secs(2), 1), 3);
        assert_eq!(gone, [0, 2, 4].map(Duration::from_secs));
    }

    #[test]
    fn lanes_share_the_rate() {
        let mut lanes = vec![pace(10, Duration::from_secs(1), 5); 5];
        let within = |pace: &mut Pace| {
            let gone = departures(pace, 100);
            gone.into_iter().filter(|at| *at < Duration::from_secs(10)).count()
        };
        assert_eq!(lanes.iter_mut().map(within).sum::<usize>(), 100);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_it() {
        let mut pace = pace(1, Duration::from_secs(1), 1);
        pace.take(START);
        let earlier = START - Duration::from_secs(3_600);
        assert!(pace.next(earlier) <= earlier + Duration::from_secs(1));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_stretch_of_time_sees_more_than_the_rate_and_one_burst(
            limit in 1..500u32,
            period in 1..5_000u64,
            idle in prop::collection::vec(0..2_000u64, 1..60),
        ) {
            let rate = Rate::new(limit, Duration::from_millis(period)).unwrap();
            let mut pace = Pace::new(rate, 1);
            let (mut now, mut gone) = (START, Vec::new());
            for pause in idle {
                now = (now + Duration::from_millis(pause)).max(pace.next(now));
                pace.take(now);
                gone.push(now);
            }
            for (first, from) in gone.iter().enumerate() {
                for (last, to) in gone.iter().enumerate().skip(first) {
                    let allowed = (*to - *from).as_secs_f64() / rate.period().as_secs_f64()
                        * f64::from(limit) + rate.burst() as f64;
                    prop_assert!((last - first + 1) as f64 <= allowed + 1e-6);
                }
            }
        }
    }
}
