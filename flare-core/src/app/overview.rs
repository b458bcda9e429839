//! Takes the question who is behind; gives subscriptions of all resources, those first that it is about.

use super::flare::Flare;
use crate::error::Result;
use crate::model::{ResourceId, SubscriptionStatus, SubscriptionSummary, SummaryOrder, Timestamp};
use crate::pipeline::OverviewTotals;
use crate::port::Page;

/// Which subscriptions to show, and which of them first.
///
/// ```
/// use flare_core::OverviewQuery;
/// use flare_core::model::{SubscriptionStatus, SummaryOrder};
/// use flare_core::port::Page;
///
/// let suspended = OverviewQuery::new(Page::new(10, 0))
///     .by(SummaryOrder::Oldest)
///     .status(SubscriptionStatus::Suspended);
/// assert_eq!(suspended.order, SummaryOrder::Oldest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverviewQuery {
    /// Which come first.
    pub order: SummaryOrder,
    /// Only those that stand there.
    pub status: Option<SubscriptionStatus>,
    /// Only those of this resource.
    pub resource: Option<ResourceId>,
    /// Which part of the list.
    pub page: Page,
}

impl OverviewQuery {
    /// A page of all subscriptions, those first that have most pending.
    pub const fn new(page: Page) -> Self {
        Self { order: SummaryOrder::Lag, status: None, resource: None, page }
    }

    /// The same in another order.
    #[must_use]
    pub const fn by(mut self, order: SummaryOrder) -> Self {
        self.order = order;
        self
    }

    /// The same, of those that stand there.
    #[must_use]
    pub const fn status(mut self, status: SubscriptionStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// The same, of one resource.
    #[must_use]
    pub const fn resource(mut self, resource: ResourceId) -> Self {
        self.resource = Some(resource);
        self
    }
}

/// How subscriptions are doing, those first that were asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SubscriptionOverview {
    /// The page.
    pub items: Vec<SubscriptionSummary>,
    /// How many there are on all pages.
    pub total: u64,
    /// All subscriptions together, whatever was asked for.
    pub totals: OverviewTotals,
    /// When it was so, by the store's clock.
    pub as_of: Timestamp,
}

impl Flare {
    /// Who is behind: subscriptions of all resources with their lag, failures and rates, in the order asked for; the
    /// same from every node.
    ///
    /// What it shows is about a second old at most, however many look: one computation is for all who
    /// look through handles of one node in that time. It costs what there is to count, a share of the time at most,
    /// so it is older where counting takes long. While it is looked at the handle keeps some hundred bytes for each
    /// subscription.
    pub async fn overview(&self, query: OverviewQuery) -> Result<SubscriptionOverview> {
        let picture = self.context().overview().await?;
        let fits = |summary: &SubscriptionSummary| {
            query.status.is_none_or(|status| summary.status == status)
                && query.resource.is_none_or(|resource| summary.resource == Some(resource))
        };
        let mut places: Vec<usize> = (0..picture.summaries.len()).collect();
        places.retain(|place| fits(&picture.summaries[*place]));
        let total = places.len() as u64;
        let compare = |a: &usize, b: &usize| {
            query.order.compare(&picture.summaries[*a], &picture.summaries[*b])
        };
        let skipped = usize::try_from(query.page.offset).unwrap_or(usize::MAX).min(places.len());
        let end = skipped.saturating_add(query.page.limit as usize).min(places.len());
        // Only what is shown has to be in order, not all there is.
        if end < places.len() {
            places.select_nth_unstable_by(end, compare);
            places.truncate(end);
        }
        places.sort_unstable_by(compare);
        let cluster = self.cluster_seen().await;
        let shown = places.into_iter().skip(skipped).map(|place| {
            let mut summary = picture.summaries[place].clone();
            let worker = cluster.worker(picture.slots[place]);
            summary.node = worker.map(|node| node.to_string());
            summary
        });
        let (items, totals) = (shown.collect(), picture.totals.clone());
        Ok(SubscriptionOverview { items, total, totals, as_of: picture.as_of })
    }
}
