//! Takes how all subscriptions are doing; gives figures of those few that are furthest behind or fail most, and of all
//! others together. However many subscriptions there are and take turns at being worst, so many names are given at most.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use metrics::gauge;

use super::context::Context;
use super::overview::OverviewPicture;
use crate::error::Result;
use crate::model::subscription::{SubscriptionSummary, SummaryOrder};
use crate::model::{SubscriptionId, SubscriptionRates};
use crate::observe;

/// Recorders may have forgotten a name after this time.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);
/// So many times as many names as are shown at once are given within that time.
const NAMES: usize = 10;
/// What all are called that have no name of their own.
const OTHERS: &str = "others";

/// The subscriptions that have figures of their own.
#[derive(Debug)]
pub(super) struct WorstSubscriptions {
    most: usize,
    /// When each was named last, by the monotonic clock.
    named: HashMap<SubscriptionId, Duration>,
    /// Those that were named the last time.
    shown: HashSet<SubscriptionId>,
}

/// The figures of one, or of several together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct WorstFigures {
    lag: u64,
    oldest: Duration,
    failures: u32,
    rates: SubscriptionRates,
}

impl WorstSubscriptions {
    pub(super) fn new(most: usize) -> Self {
        Self { most, named: HashMap::new(), shown: HashSet::new() }
    }

    /// Shows how they are.
    pub(super) async fn show(&mut self, context: &Context) -> Result<()> {
        if self.most == 0 {
            return Ok(());
        }
        let picture = context.overview().await?;
        let worst = self.choose(&picture, context.clock.monotonic());
        let mut others = WorstFigures::default();
        for summary in &picture.summaries {
            let figures = WorstFigures::of(summary);
            if worst.contains(&summary.id) {
                figures.show(&summary.id.to_string());
            } else {
                others = others.with(&figures);
            }
        }
        others.show(OTHERS);
        // Who is well again is shown to be so; after that a recorder may forget the name.
        for well in self.shown.difference(&worst) {
            WorstFigures::default().show(&well.to_string());
        }
        self.shown = worst;
        Ok(())
    }

    /// Half of them those furthest behind, half those that fail most; none of those that do neither.
    fn choose(&mut self, picture: &OverviewPicture, now: Duration) -> HashSet<SubscriptionId> {
        self.named.retain(|_, at| now.saturating_sub(*at) < FORGOTTEN_AFTER);
        let bad = |it: &&SubscriptionSummary| it.lag > 0 || it.consecutive_failures > 0;
        let mut bad: Vec<&SubscriptionSummary> = picture.summaries.iter().filter(bad).collect();
        let mut worst = HashSet::new();
        for (order, room) in
            [(SummaryOrder::Failures, self.most / 2), (SummaryOrder::Lag, self.most)]
        {
            bad.sort_unstable_by(|a, b| order.compare(a, b));
            for summary in &bad {
                if worst.len() >= room {
                    break;
                }
                let known = self.named.contains_key(&summary.id);
                if known || self.named.len() < self.most.saturating_mul(NAMES) {
                    self.named.insert(summary.id, now);
                    worst.insert(summary.id);
                }
            }
        }
        worst
    }
}

impl WorstFigures {
    fn of(summary: &SubscriptionSummary) -> Self {
        Self {
            lag: summary.lag,
            oldest: summary.oldest_pending,
            failures: summary.consecutive_failures,
            rates: summary.rates,
        }
    }

    fn with(self, other: &Self) -> Self {
        Self {
            lag: self.lag + other.lag,
            oldest: self.oldest.max(other.oldest),
            failures: self.failures.max(other.failures),
            rates: self.rates + other.rates,
        }
    }

    fn show(&self, name: &str) {
        let labelled = |metric: &'static str| gauge!(metric, "subscription" => name.to_owned());
        labelled(observe::SUBSCRIPTION_LAG).set(self.lag as f64);
        labelled(observe::SUBSCRIPTION_OLDEST).set(self.oldest.as_secs_f64());
        labelled(observe::SUBSCRIPTION_FAILURES).set(f64::from(self.failures));
        let rates = [
            ("delivered", self.rates.delivered),
            ("failed", self.rates.failed),
            ("discarded", self.rates.discarded),
        ];
        for (outcome, rates) in rates {
            let labels = [("subscription", name.to_owned()), ("outcome", outcome.to_owned())];
            gauge!(observe::SUBSCRIPTION_RATE, &labels).set(rates.minute);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SubscriptionStatus;

    fn summary(number: u32, lag: u64, failures: u32) -> SubscriptionSummary {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let id = SubscriptionId::from_bytes(id);
        let mut summary = SubscriptionSummary::new(id, SubscriptionStatus::Active);
        (summary.lag, summary.consecutive_failures) = (lag, failures);
        summary
    }

    fn numbers(chosen: &HashSet<SubscriptionId>) -> Vec<u32> {
        let number = |id: &SubscriptionId| {
            let [a, b, c, d, ..] = *id.as_bytes();
            u32::from_be_bytes([a, b, c, d])
        };
        let mut numbers: Vec<u32> = chosen.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn those_furthest_behind_and_those_that_fail_most_have_names() {
        let mut worst = WorstSubscriptions::new(4);
        let summaries = vec![
            summary(1, 0, 0),
            summary(2, 100, 0),
            summary(3, 1, 9),
            summary(4, 0, 8),
            summary(5, 90, 0),
            summary(6, 80, 1),
        ];
        let picture = OverviewPicture::example(summaries);
        assert_eq!(numbers(&worst.choose(&picture, Duration::ZERO)), [2, 3, 4, 5]);
        let well = OverviewPicture::example(vec![summary(1, 0, 0), summary(2, 0, 0)]);
        assert!(worst.choose(&well, Duration::ZERO).is_empty());
    }

    #[test]
    fn few_names_are_given_however_many_take_turns() {
        let mut worst = WorstSubscriptions::new(2);
        let mut names = HashSet::new();
        for turn in 0..1_000 {
            let picture =
                OverviewPicture::example(vec![summary(turn, 5, 0), summary(turn + 1, 4, 3)]);
            names.extend(worst.choose(&picture, Duration::from_secs(1)));
        }
        assert_eq!(names.len(), 2 * NAMES);
        assert!(worst.named.len() <= 2 * NAMES);
        let later = Duration::from_hours(2);
        let picture = OverviewPicture::example(vec![summary(5_000, 5, 0)]);
        assert_eq!(
            numbers(&worst.choose(&picture, later)),
            [5_000],
            "others are forgotten by then"
        );
    }
}
