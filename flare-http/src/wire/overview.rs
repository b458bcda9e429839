//! How many subscriptions are doing, as JSON has it.

use flare_core::model::{SubscriptionId, SubscriptionSummary, Timestamp};
use flare_core::port::Page;
use flare_core::{OverviewTotals, SubscriptionOverview};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::page::Pagination;
use super::rates::RatesView;
use super::word::{OrderWord, StatusWord, Word};

/// The query of the list of all subscriptions.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "described; the extractor reads it")]
pub(crate) struct OverviewParams {
    /// Which come first: those with most pending (`lag`, unless said otherwise), those whose oldest pending change has
    /// waited longest (`oldest`), those that failed most often in a row (`failures`), or those with most outcomes a
    /// second (`rate`).
    #[param(nullable = false, inline)]
    order: Option<OrderWord>,
    /// Only those that stand there.
    #[param(nullable = false, inline)]
    status: Option<StatusWord>,
    /// At most this many items; 30 unless the host says otherwise.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// After skipping this many.
    #[param(minimum = 0, nullable = false)]
    offset: Option<u64>,
}

/// Subscriptions of all resources, in the order asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscriptionOverviewList {
    pagination: Pagination,
    subscriptions: Vec<SummaryView>,
    totals: TotalsView,
    /// When it was so.
    #[schema(format = DateTime)]
    as_of: String,
}

/// How one of many subscriptions is doing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SubscriptionSummary)]
struct SummaryView {
    #[schema(value_type = String, format = "uuid")]
    id: SubscriptionId,
    /// Whose documents it is told of; missing where its record cannot be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    resource: Option<String>,
    /// Where its notifications go, with placeholders; missing where its client only pulls, or it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    url: Option<String>,
    status: StatusWord,
    /// Why it stands there, if not by the user's wish.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    /// How many documents the client does not have in their newest version yet.
    lag: u64,
    /// Since how long the oldest of what is pending is so.
    oldest_pending_seconds: u64,
    /// Attempts that have failed since one last succeeded.
    consecutive_failures: u32,
    /// Whether the client is taken for down.
    probing: bool,
    rates: RatesView,
    /// When the client last accepted one; null if it never did.
    #[schema(required = true, format = DateTime)]
    last_success_at: Option<String>,
    /// Why an attempt last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// When that was; earlier than `lastSuccessAt`, it is past.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    last_error_at: Option<String>,
    /// The node that works its lanes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    node: Option<String>,
}

/// All subscriptions together, whatever was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OverviewTotals)]
struct TotalsView {
    /// How many there are.
    subscriptions: u64,
    /// How many of them have something pending.
    behind: u64,
    /// How many of them failed when they were tried last.
    failing: u64,
    /// Notifications pending.
    lag: u64,
    /// Since how long the oldest of what is pending is so.
    oldest_pending_seconds: u64,
    rates: RatesView,
    /// How many stand where.
    by_status: Vec<StandingCount>,
}

/// How many subscriptions stand somewhere.
#[derive(Debug, Serialize, ToSchema)]
struct StandingCount {
    status: StatusWord,
    count: u64,
}

impl SubscriptionOverviewList {
    pub(crate) fn new(page: Page, overview: SubscriptionOverview) -> Self {
        Self {
            pagination: Pagination::new(page, overview.total),
            subscriptions: overview.items.into_iter().map(SummaryView::from).collect(),
            totals: overview.totals.into(),
            as_of: overview.as_of.to_string(),
        }
    }
}

impl From<SubscriptionSummary> for SummaryView {
    fn from(summary: SubscriptionSummary) -> Self {
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        Self {
            id: summary.id,
            resource: summary.resource.map(|resource| resource.to_string()),
            url: summary.url,
            status: Word(summary.status),
            reason: summary.reason,
            lag: summary.lag,
            oldest_pending_seconds: summary.oldest_pending.as_secs(),
            consecutive_failures: summary.consecutive_failures,
            probing: summary.probing,
            rates: summary.rates.into(),
            last_success_at: text(summary.last_success_at),
            last_error: summary.last_error,
            last_error_at: text(summary.last_error_at),
            node: summary.node,
        }
    }
}

impl From<OverviewTotals> for TotalsView {
    fn from(totals: OverviewTotals) -> Self {
        let count = |(status, count)| StandingCount { status: Word(status), count };
        Self {
            subscriptions: totals.subscriptions,
            behind: totals.behind,
            failing: totals.failing,
            lag: totals.lag,
            oldest_pending_seconds: totals.oldest_pending.as_secs(),
            rates: totals.rates.into(),
            by_status: totals.by_status.into_iter().map(count).collect(),
        }
    }
}
