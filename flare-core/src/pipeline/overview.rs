//! Takes what the stores know; gives how every subscription is doing, in a line each, and all of them together. Computed
//! once for all who look at about the same time, and the seldomer the more it costs.

mod known;
mod summing;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use self::known::KnownSubscriptions;
use self::summing::summarize;
use super::context::Context;
use crate::error::Result;
use crate::model::subscription::SubscriptionSummary;
use crate::model::{SubscriptionRates, SubscriptionStatus, Timestamp};

/// How old what is shown may be.
const FRESH: Duration = Duration::from_secs(1);
/// Looking costs what there is to count: at most this part of the time is spent on it.
const SHARE: u32 = 20;

/// All subscriptions together.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct OverviewTotals {
    /// How many there are, but for those that are being deleted.
    pub subscriptions: u64,
    /// How many stand where.
    pub by_status: Vec<(SubscriptionStatus, u64)>,
    /// How many of them have something pending.
    pub behind: u64,
    /// How many of them failed when they were tried last.
    pub failing: u64,
    /// Notifications pending.
    pub lag: u64,
    /// Since how long the oldest of what is pending is so.
    pub oldest_pending: Duration,
    /// What becomes of notifications, a second.
    pub rates: SubscriptionRates,
}

/// How all subscriptions were doing at a time.
#[derive(Debug)]
pub(crate) struct OverviewPicture {
    pub(crate) as_of: Timestamp,
    /// In no order; without the node, which the cluster knows.
    pub(crate) summaries: Vec<SubscriptionSummary>,
    pub(crate) totals: OverviewTotals,
    /// The slot of each.
    pub(crate) slots: Vec<u32>,
    /// When it was begun, by the monotonic clock, and how long that took.
    begun: Duration,
    took: Duration,
}

/// The last picture, for all who look, and what is known for the next one.
#[derive(Debug, Default)]
pub(crate) struct OverviewCache(Mutex<LastLook>);

#[derive(Debug, Default)]
struct LastLook {
    picture: Option<Arc<OverviewPicture>>,
    known: KnownSubscriptions,
}

impl Context {
    /// How all subscriptions are doing, at most about a second old.
    pub(crate) async fn overview(&self) -> Result<Arc<OverviewPicture>> {
        // A call that comes while it is computed waits for that, and has it.
        let mut last = self.overviews.0.lock().await;
        let now = self.clock.monotonic();
        let fresh = |picture: &&Arc<OverviewPicture>| {
            now.saturating_sub(picture.begun) < FRESH.max(picture.took * SHARE)
        };
        if let Some(picture) = last.picture.as_ref().filter(fresh) {
            return Ok(Arc::clone(picture));
        }
        let as_of = self.time().await?;
        let (summaries, slots) = summarize(self, &mut last.known, as_of).await?;
        let totals = OverviewTotals::of(&summaries);
        let took = self.clock.monotonic().saturating_sub(now);
        let picture =
            Arc::new(OverviewPicture { as_of, summaries, totals, slots, begun: now, took });
        last.picture = Some(Arc::clone(&picture));
        Ok(picture)
    }
}

#[cfg(all(test, feature = "metrics"))]
impl OverviewPicture {
    pub(crate) fn example(summaries: Vec<SubscriptionSummary>) -> Self {
        let (as_of, totals) = (Timestamp::EPOCH, OverviewTotals::of(&summaries));
        let (slots, begun, took) = (Vec::new(), Duration::ZERO, Duration::ZERO);
        Self { as_of, summaries, totals, slots, begun, took }
    }
}

impl OverviewTotals {
    fn of(summaries: &[SubscriptionSummary]) -> Self {
        let count = |fits: fn(&SubscriptionSummary) -> bool| {
            summaries.iter().filter(|it| fits(it)).count() as u64
        };
        let stands = |status| summaries.iter().filter(|it| it.status == status).count() as u64;
        Self {
            subscriptions: summaries.len() as u64,
            by_status: SubscriptionStatus::SHOWN.map(|status| (status, stands(status))).to_vec(),
            behind: count(|it| it.lag > 0),
            failing: count(|it| it.consecutive_failures > 0),
            lag: summaries.iter().map(|it| it.lag).sum(),
            oldest_pending: summaries.iter().map(|it| it.oldest_pending).max().unwrap_or_default(),
            rates: summaries.iter().fold(SubscriptionRates::default(), |sum, it| sum + it.rates),
        }
    }
}
