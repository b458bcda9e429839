//! How often something happened lately, in so few integers that it can be stored with what it is of. A reader reckons with
//! the time that has passed since, so a rate falls to nothing without being written again.

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// How many seconds are counted together.
const STEP: i64 = 10;
/// So many of them: five minutes, and the one that is not over.
const STEPS: usize = 31;
const MINUTE: i64 = 60;
const FIVE_MINUTES: i64 = 300;

/// Something a second, over two times.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WindowRates {
    /// Over the last minute.
    pub minute: f64,
    /// Over the last five.
    pub five_minutes: f64,
}

impl WindowRates {
    /// These rates, for what hands them on.
    pub const fn new(minute: f64, five_minutes: f64) -> Self {
        Self { minute, five_minutes }
    }
}

impl std::ops::Add for WindowRates {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.minute + other.minute, self.five_minutes + other.five_minutes)
    }
}

impl std::iter::Sum for WindowRates {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::default(), std::ops::Add::add)
    }
}

/// How often something happened in the last five minutes, in steps of ten seconds.
///
/// ```
/// use flare_core::model::{RateWindow, Timestamp};
///
/// let mut window = RateWindow::default();
/// (0..60).for_each(|second| window.add(Timestamp::from_unix_seconds(second), 5));
/// assert_eq!(window.rates(Timestamp::from_unix_seconds(60)).minute, 5.0);
/// assert_eq!(window.rates(Timestamp::from_unix_seconds(90)).minute, 2.5);
/// assert_eq!(window.rates(Timestamp::from_unix_seconds(400)).five_minutes, 0.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredWindow", into = "StoredWindow")]
pub struct RateWindow {
    /// The newest step, counted since 1970.
    newest: i64,
    /// By step, modulo their number.
    counts: [u32; STEPS],
}

impl Default for RateWindow {
    fn default() -> Self {
        Self { newest: 0, counts: [0; STEPS] }
    }
}

impl RateWindow {
    /// It happened so often now. A clock that went back adds to the newest step.
    pub fn add(&mut self, now: Timestamp, count: u64) {
        let step = step_of(now).max(self.newest);
        let passed = step.saturating_sub(self.newest).min(STEPS as i64);
        for ago in 0..passed {
            self.counts[place(step - ago)] = 0;
        }
        self.newest = step;
        let counted = &mut self.counts[place(step)];
        *counted = counted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// How often a second it happened, as of now. What happened in a step is taken for spread over it evenly.
    pub fn rates(&self, now: Timestamp) -> WindowRates {
        WindowRates::new(self.over(MINUTE, now), self.over(FIVE_MINUTES, now))
    }

    /// How often it happened in each ten seconds of the last five minutes, oldest first, as of now. The last of them is
    /// not over.
    pub fn counts(&self, now: Timestamp) -> Vec<u64> {
        // Written by a node whose clock is a little ahead, it is of now.
        let last = step_of(now).max(self.newest);
        let count = |step: i64| match self.newest.saturating_sub(step) {
            ago if (0..STEPS as i64).contains(&ago) => u64::from(self.counts[place(step)]),
            _ => 0,
        };
        (0..STEPS as i64).rev().map(|ago| count(last.saturating_sub(ago))).collect()
    }

    /// Whether nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.counts == [0; STEPS]
    }

    fn over(&self, seconds: i64, now: Timestamp) -> f64 {
        // Written by a node whose clock is a little ahead, it is of now.
        let now = now.unix_millis().max(self.newest.saturating_mul(STEP * 1_000));
        let since = now.saturating_sub(seconds * 1_000);
        let counted = (0..STEPS as i64).map(|ago| {
            let step = self.newest - ago;
            let end = step.saturating_add(1).saturating_mul(STEP * 1_000);
            let part = end.saturating_sub(since) as f64 / (STEP * 1_000) as f64;
            f64::from(self.counts[place(step)]) * part.clamp(0.0, 1.0)
        });
        counted.sum::<f64>() / seconds as f64
    }
}

fn step_of(now: Timestamp) -> i64 {
    now.unix_seconds().div_euclid(STEP)
}

fn place(step: i64) -> usize {
    step.rem_euclid(STEPS as i64) as usize
}

/// As it is stored: the newest step, and the counts from there on backwards as far as there are any.
#[derive(Serialize, Deserialize)]
struct StoredWindow {
    step: i64,
    counts: Vec<u32>,
}

impl From<RateWindow> for StoredWindow {
    fn from(window: RateWindow) -> Self {
        let newest = window.newest;
        let mut counts: Vec<u32> =
            (0..STEPS as i64).map(|ago| window.counts[place(newest - ago)]).collect();
        counts.truncate(counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        Self { step: newest, counts }
    }
}

impl From<StoredWindow> for RateWindow {
    fn from(stored: StoredWindow) -> Self {
        // What no clock tells was not written by a window.
        let newest = stored.step.clamp(i64::MIN / (STEP * 2_000), i64::MAX / (STEP * 2_000));
        let mut window = Self { newest, counts: [0; STEPS] };
        for (count, ago) in stored.counts.into_iter().zip(0..STEPS as i64) {
            window.counts[place(newest - ago)] = count;
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_unix_seconds(second)
    }

    #[test]
    fn rates_are_of_the_last_minute_and_the_last_five() {
        let mut window = RateWindow::default();
        for second in 1_000..1_060 {
            window.add(at(second), 10);
        }
        assert_eq!(window.rates(at(1_060)), WindowRates::new(10.0, 2.0));
        assert_eq!(window.rates(at(1_090)), WindowRates::new(5.0, 2.0));
        assert_eq!(window.rates(at(1_095)), WindowRates::new(25.0 / 6.0, 2.0), "half a step");
        assert_eq!(window.rates(at(1_360)), WindowRates::default(), "without being written");
        assert_eq!(window.rates(at(900)).minute, window.rates(at(1_050)).minute, "a clock behind");
    }

    #[test]
    fn a_clock_that_went_back_loses_nothing_and_a_pause_forgets() {
        let mut window = RateWindow::default();
        window.add(at(1_000), 6);
        window.add(at(500), 6);
        assert_eq!(window.rates(at(1_000)).minute, 12.0 / 60.0);
        window.add(at(5_000), 6);
        assert_eq!(window.rates(at(5_000)), WindowRates::new(0.1, 0.02));
    }

    #[test]
    fn is_stored_in_few_words() {
        let mut window = RateWindow::default();
        assert!(window.is_empty());
        for (second, count) in [(1_000, 3), (1_010, 4), (1_039, 1)] {
            window.add(at(second), count);
        }
        let text = serde_json::to_string(&window).unwrap();
        assert_eq!(text, r#"{"step":103,"counts":[1,0,4,3]}"#);
        assert_eq!(serde_json::from_str::<RateWindow>(&text).unwrap(), window);
        let odd = r#"{"step":9223372036854775807,"counts":[4294967295,1],"newer":1}"#;
        let odd: RateWindow = serde_json::from_str(odd).unwrap();
        assert!(odd.rates(Timestamp::MAX).minute.is_finite());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn is_what_happened_but_for_a_step_at_the_edge(
            happened in prop::collection::vec((0..400_i64, 0..50_u64), 0..60),
            later in 0..400_i64,
        ) {
            let mut happened = happened;
            happened.sort_unstable();
            let mut window = RateWindow::default();
            happened.iter().for_each(|(second, count)| window.add(at(*second), *count));
            let now = happened.last().map_or(0, |last| last.0) + later;
            for (seconds, rate) in [(60, window.rates(at(now)).minute), (300, window.rates(at(now)).five_minutes)] {
                let count = |from: i64| -> u64 {
                    happened.iter().filter(|(second, _)| *second >= from).map(|(_, count)| count).sum()
                };
                let sum = rate * seconds as f64;
                prop_assert!(sum >= count(now - seconds + STEP) as f64 - 0.001);
                prop_assert!(sum <= count(now - seconds - STEP) as f64 + 0.001);
            }
            let again = serde_json::to_string(&window).unwrap();
            prop_assert_eq!(serde_json::from_str::<RateWindow>(&again).unwrap().rates(at(now)), window.rates(at(now)));
        }
    }

    #[test]
    fn counts_are_of_the_last_five_minutes() {
        let at = Timestamp::from_unix_seconds;
        let mut window = RateWindow::default();
        window.add(at(1_000), 1);
        window.add(at(1_015), 2);
        let shown = |second| window.counts(at(second));
        assert_eq!(shown(1_019)[STEPS - 2..], [1, 2]);
        assert_eq!(shown(1_019).iter().sum::<u64>(), 3);
        assert_eq!(shown(1_025)[STEPS - 3..], [1, 2, 0]);
        assert_eq!((shown(1_310)[0], shown(1_310)[1]), (2, 0));
        assert_eq!(shown(1_320), vec![0; STEPS]);
        assert_eq!(shown(900), shown(1_019), "a clock that is behind");
        assert_eq!(RateWindow::default().counts(at(5)), vec![0; STEPS]);
    }
}
