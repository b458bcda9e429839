//! Takes how all subscriptions are doing; gives figures of those few that are furthest behind or fail most, and of all
//! others together. However many subscriptions there are and take turns at being worst, so many names are given at most.

use std::collections::HashSet;
use std::time::Duration;

use metrics::gauge;

use super::context::Context;
use super::metered_names::{MeteredNames, OTHERS};
use super::overview::OverviewPicture;
use crate::error::Result;
use crate::model::subscription::{SubscriptionSummary, SummaryOrder};
use crate::model::{SubscriptionId, SubscriptionRates};
use crate::observe;

/// The subscriptions that have figures of their own.
#[derive(Debug)]
pub(super) struct WorstSubscriptions(MeteredNames<SubscriptionId>);

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
        Self(MeteredNames::new(most))
    }

    /// Shows how they are.
    pub(super) async fn show(&mut self, context: &Context) -> Result<()> {
        if self.0.is_off() {
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
        for well in self.0.show(worst) {
            WorstFigures::default().show(&well.to_string());
        }
        Ok(())
    }

    /// Half of them those furthest behind, half those that fail most; none of those that do neither.
    fn choose(&mut self, picture: &OverviewPicture, now: Duration) -> HashSet<SubscriptionId> {
        let bad = |it: &&SubscriptionSummary| it.lag > 0 || it.consecutive_failures > 0;
        let mut bad: Vec<&SubscriptionSummary> = picture.summaries.iter().filter(bad).collect();
        let orders = [SummaryOrder::Failures, SummaryOrder::Lag].map(|order| {
            bad.sort_unstable_by(|a, b| order.compare(a, b));
            bad.iter().map(|it| it.id).collect()
        });
        self.0.choose(orders, now)
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
}
