//! How one of many subscriptions is doing, in a line: what it takes to see who is behind.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::SubscriptionStatus;
use crate::model::{Invalid, ResourceId, SubscriptionId, SubscriptionRates, Timestamp};

/// How one of many subscriptions is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SubscriptionSummary {
    /// Which one.
    pub id: SubscriptionId,
    /// Whose documents it is told of; unknown where its record cannot be read at all.
    pub resource: Option<ResourceId>,
    /// Where its notifications go, as it was written, with placeholders.
    pub url: Option<String>,
    /// Where it stands.
    pub status: SubscriptionStatus,
    /// Why it stands there, if not by the user's wish.
    pub reason: Option<String>,
    /// How many documents the client does not have in their newest version yet.
    pub lag: u64,
    /// Since how long the oldest of what is pending is so; nothing if none is.
    pub oldest_pending: Duration,
    /// How many attempts have failed since one last succeeded or was refused, or an operator resumed it; of
    /// its lanes, the one that has most.
    pub consecutive_failures: u32,
    /// Whether the client is taken for down.
    pub probing: bool,
    /// What becomes of its notifications, a second.
    pub rates: SubscriptionRates,
    /// When the client last accepted one.
    pub last_success_at: Option<Timestamp>,
    /// Why an attempt last failed, in words.
    pub last_error: Option<String>,
    /// When that was. Earlier than `last_success_at`, it is past.
    pub last_error_at: Option<Timestamp>,
    /// The node that works its lanes.
    pub node: Option<String>,
}

impl SubscriptionSummary {
    /// One that has nothing pending and did nothing yet.
    pub fn new(id: SubscriptionId, status: SubscriptionStatus) -> Self {
        Self {
            id,
            resource: None,
            url: None,
            status,
            reason: None,
            lag: 0,
            oldest_pending: Duration::ZERO,
            consecutive_failures: 0,
            probing: false,
            rates: SubscriptionRates::default(),
            last_success_at: None,
            last_error: None,
            last_error_at: None,
            node: None,
        }
    }
}

/// Which subscriptions come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SummaryOrder {
    /// Those with most pending.
    #[default]
    Lag,
    /// Those whose oldest pending change has waited longest.
    Oldest,
    /// Those that failed most often in a row.
    Failures,
    /// Those with most outcomes a second, in the last minute.
    Rate,
}

impl SummaryOrder {
    /// Every order.
    pub const ALL: [Self; 4] = [Self::Lag, Self::Oldest, Self::Failures, Self::Rate];

    /// Which of two comes first; those that are equal in this go by their lag, and then by their age.
    pub fn compare(self, a: &SubscriptionSummary, b: &SubscriptionSummary) -> Ordering {
        let by_lag = || b.lag.cmp(&a.lag);
        let first = match self {
            Self::Lag => by_lag(),
            Self::Oldest => b.oldest_pending.cmp(&a.oldest_pending),
            Self::Failures => b.consecutive_failures.cmp(&a.consecutive_failures),
            Self::Rate => b.rates.all().minute.total_cmp(&a.rates.all().minute),
        };
        first.then_with(by_lag).then_with(|| a.id.cmp(&b.id))
    }

    /// The order as JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lag => "lag",
            Self::Oldest => "oldest",
            Self::Failures => "failures",
            Self::Rate => "rate",
        }
    }
}

impl fmt::Display for SummaryOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SummaryOrder {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|order| order.as_str() == text);
        known.ok_or_else(|| Invalid::new("order", "must be lag, oldest, failures or rate"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WindowRates;

    fn summary(number: u8, lag: u64, oldest: u64, failures: u32, rate: f64) -> SubscriptionSummary {
        let id = SubscriptionId::from_bytes([number; 16]);
        let mut summary = SubscriptionSummary::new(id, SubscriptionStatus::Active);
        (summary.lag, summary.oldest_pending) = (lag, Duration::from_secs(oldest));
        summary.consecutive_failures = failures;
        summary.rates.delivered = WindowRates::new(rate, 0.0);
        summary
    }

    #[test]
    fn each_order_has_its_own_first() {
        let all = [
            summary(1, 5, 10, 0, 1.5),
            summary(2, 9, 1, 0, 0.5),
            summary(3, 5, 90, 7, 0.0),
            summary(4, 0, 0, 0, 1.5),
        ];
        for (order, expected) in [
            (SummaryOrder::Lag, [2, 1, 3, 4]),
            (SummaryOrder::Oldest, [3, 1, 2, 4]),
            (SummaryOrder::Failures, [3, 2, 1, 4]),
            (SummaryOrder::Rate, [1, 4, 2, 3]),
        ] {
            let mut sorted: Vec<&SubscriptionSummary> = all.iter().collect();
            sorted.sort_by(|a, b| order.compare(a, b));
            let ids: Vec<u8> = sorted.iter().map(|it| it.id.as_bytes()[0]).collect();
            assert_eq!(ids, expected, "{order}");
            assert_eq!(order.as_str().parse::<SummaryOrder>().unwrap(), order);
        }
        assert_eq!("age".parse::<SummaryOrder>().unwrap_err().field(), "order");
    }
}
