//! How long something took lately, counted in few buckets: enough for a mean and two quantiles, small enough to be stored
//! with what it is of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// Up to how many microseconds a bucket goes; what is longer is in one more.
const BOUNDS: [u64; 18] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    3_600_000_000,
    86_400_000_000,
];
const BUCKETS: usize = BOUNDS.len() + 1;
/// Seconds that are counted together: times are of these and those before, so of the last five minutes at least.
const PERIOD: i64 = 300;

/// How long something took, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimeFigures {
    /// How often it was measured.
    pub count: u64,
    /// How long it took on the average.
    pub mean: Duration,
    /// Half of them took no longer, as far as buckets tell.
    pub p50: Duration,
    /// Ninety-nine of a hundred took no longer, as far as buckets tell.
    pub p99: Duration,
}

/// How long something took in the last five to ten minutes.
///
/// ```
/// use std::time::Duration;
/// use flare_core::model::{RecentTimes, Timestamp};
///
/// let now = Timestamp::from_unix_seconds(1_000);
/// let mut times = RecentTimes::default();
/// (0..100).for_each(|_| times.add(now, Duration::from_millis(30)));
/// let figures = times.figures(now);
/// assert_eq!((figures.count, figures.mean), (100, Duration::from_millis(30)));
/// assert!(figures.p99 > Duration::from_millis(20) && figures.p99 <= Duration::from_millis(50));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentTimes {
    /// The period `now` is of, counted since 1970.
    period: i64,
    #[serde(skip_serializing_if = "TimeCounts::is_empty")]
    now: TimeCounts,
    /// Of the period before.
    #[serde(skip_serializing_if = "TimeCounts::is_empty")]
    before: TimeCounts,
}

/// Times that were measured, by how long they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "StoredCounts", into = "StoredCounts")]
struct TimeCounts {
    /// All of them together, in microseconds.
    micros: u64,
    buckets: [u32; BUCKETS],
}

impl RecentTimes {
    /// It took so long now.
    pub fn add(&mut self, now: Timestamp, took: Duration) {
        let period = now.unix_seconds().div_euclid(PERIOD);
        if period > self.period {
            let follows = period - 1 == self.period;
            self.before = if follows { self.now } else { TimeCounts::default() };
            (self.now, self.period) = (TimeCounts::default(), period);
        }
        self.now.add(took);
    }

    /// The same together with what was measured elsewhere.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Self>, now: Timestamp) -> TimeFigures {
        let counts = all.into_iter().flat_map(|times| times.counts(now));
        counts.fold(TimeCounts::default(), |sum, counts| sum.with(counts)).figures()
    }

    /// How long it took, as of now.
    pub fn figures(&self, now: Timestamp) -> TimeFigures {
        Self::merged([self], now)
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.before.is_empty()
    }

    /// What is not too long ago.
    fn counts(&self, now: Timestamp) -> impl Iterator<Item = &TimeCounts> {
        let passed = now.unix_seconds().div_euclid(PERIOD).saturating_sub(self.period);
        let (recent, before) = (passed <= 1, passed <= 0);
        [(recent, &self.now), (before, &self.before)]
            .into_iter()
            .filter_map(|(counts, times)| counts.then_some(times))
    }
}

impl TimeCounts {
    fn is_empty(&self) -> bool {
        self.buckets == [0; BUCKETS]
    }

    fn add(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros = self.micros.saturating_add(micros);
        let bucket = &mut self.buckets[BOUNDS.partition_point(|bound| *bound < micros)];
        *bucket = bucket.saturating_add(1);
    }

    fn with(mut self, other: &Self) -> Self {
        self.micros = self.micros.saturating_add(other.micros);
        for (sum, count) in self.buckets.iter_mut().zip(other.buckets) {
            *sum = sum.saturating_add(count);
        }
        self
    }

    fn figures(&self) -> TimeFigures {
        let count: u64 = self.buckets.iter().map(|count| u64::from(*count)).sum();
        let mean = Duration::from_micros(self.micros.checked_div(count).unwrap_or(0));
        TimeFigures { count, mean, p50: self.quantile(count, 50), p99: self.quantile(count, 99) }
    }

    /// So many of a hundred took no longer. Within a bucket they are taken for spread evenly; of the last one, which
    /// has no end, only where it begins is known.
    fn quantile(&self, count: u64, percent: u64) -> Duration {
        let wanted = (count * percent).div_ceil(100).max(1);
        let mut passed = 0;
        for (place, in_bucket) in self.buckets.iter().map(|count| u64::from(*count)).enumerate() {
            if passed + in_bucket >= wanted && in_bucket > 0 {
                let low = if place == 0 { 0 } else { BOUNDS[place - 1] };
                let high = BOUNDS.get(place).copied().unwrap_or(low);
                let part = (wanted - passed) as f64 / in_bucket as f64;
                return Duration::from_micros(low + ((high - low) as f64 * part) as u64);
            }
            passed += in_bucket;
        }
        Duration::ZERO
    }
}

/// As they are stored: without the empty buckets at the end.
#[derive(Serialize, Deserialize)]
struct StoredCounts {
    micros: u64,
    counts: Vec<u32>,
}

impl From<TimeCounts> for StoredCounts {
    fn from(times: TimeCounts) -> Self {
        let last = times.buckets.iter().rposition(|count| *count > 0);
        let counts = times.buckets.iter().take(last.map_or(0, |last| last + 1));
        Self { micros: times.micros, counts: counts.copied().collect() }
    }
}

impl From<StoredCounts> for TimeCounts {
    fn from(stored: StoredCounts) -> Self {
        let mut times = Self { micros: stored.micros, buckets: [0; BUCKETS] };
        for (bucket, count) in times.buckets.iter_mut().zip(stored.counts) {
            *bucket = count;
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_unix_seconds(second)
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_few_slow_ones_show_in_the_tail_alone() {
        let mut times = RecentTimes::default();
        (0..98).for_each(|_| times.add(at(0), millis(3)));
        (0..2).for_each(|_| times.add(at(0), millis(4_000)));
        let figures = times.figures(at(0));
        assert_eq!((figures.count, figures.mean), (100, Duration::from_micros(82_940)));
        assert!(figures.p50 > millis(2) && figures.p50 <= millis(5), "{figures:?}");
        assert!(figures.p99 > millis(2_000) && figures.p99 <= millis(5_000), "{figures:?}");
        assert_eq!(RecentTimes::default().figures(at(0)), TimeFigures::default());
    }

    #[test]
    fn what_was_measured_is_of_the_last_five_minutes_and_forgotten_after_ten() {
        let mut times = RecentTimes::default();
        times.add(at(299), millis(1));
        let counted = |times: &RecentTimes, second| times.figures(at(second)).count;
        assert_eq!((counted(&times, 299), counted(&times, 598), counted(&times, 600)), (1, 1, 0));
        times.add(at(301), millis(1));
        assert_eq!((counted(&times, 301), counted(&times, 600)), (2, 1));
        times.add(at(1_500), millis(1));
        assert_eq!(counted(&times, 1_500), 1);
        times.add(at(1_000), millis(1));
        assert_eq!(counted(&times, 1_500), 2, "a clock that went back");
    }

    #[test]
    fn is_stored_in_few_words() {
        let mut times = RecentTimes::default();
        assert_eq!(serde_json::to_string(&times).unwrap(), r#"{"period":0}"#);
        times.add(at(400), millis(3));
        times.add(at(400), millis(1));
        let text = serde_json::to_string(&times).unwrap();
        assert_eq!(text, r#"{"period":1,"now":{"micros":4000,"counts":[1,0,1]}}"#);
        assert_eq!(serde_json::from_str::<RecentTimes>(&text).unwrap(), times);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn quantiles_are_in_the_bucket_they_belong_to(
            micros in prop::collection::vec(0..200_000_000_000_u64, 1..80)
        ) {
            let mut times = RecentTimes::default();
            micros.iter().for_each(|it| times.add(at(0), Duration::from_micros(*it)));
            let mut sorted = micros;
            sorted.sort_unstable();
            let figures = times.figures(at(0));
            for (percent, shown) in [(50, figures.p50), (99, figures.p99)] {
                let exact = sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
                let place = BOUNDS.partition_point(|bound| *bound < exact);
                let low = if place == 0 { 0 } else { BOUNDS[place - 1] };
                let high = BOUNDS.get(place).copied().unwrap_or(low);
                let shown = shown.as_micros() as u64;
                prop_assert!(shown >= low && shown <= high, "{shown} of {exact}: {low} to {high}");
            }
        }
    }
}
