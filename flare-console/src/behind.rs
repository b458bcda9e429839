//! Takes the handle; gives subscriptions of all resources in a line each, those first that are asked for. The one
//! file that knows where that comes from.

use flare_core::model::{
    ResourceId, Subscription, SubscriptionStatus, SubscriptionSummary, SummaryOrder,
};
use flare_core::port::Page;
use flare_core::{Flare, OverviewQuery, Result, SubscriptionOverview};

use crate::lists::Part;
use crate::show::{State, rate};

/// How one of many subscriptions is doing.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Why an attempt last failed, unless one went well since.
    pub(crate) error: Option<String>,
    pub(crate) its: SubscriptionSummary,
}

impl From<SubscriptionSummary> for Line {
    fn from(its: SubscriptionSummary) -> Self {
        let pulled = || match its.status {
            SubscriptionStatus::Unreadable => its.id.to_string(),
            _ => PULLED.to_owned(),
        };
        let name = its.url.clone().unwrap_or_else(pulled);
        let error = its.last_error.clone().filter(|_| its.last_error_at > its.last_success_at);
        Self { name, error: error.or_else(|| its.reason.clone()), its }
    }
}

impl Line {
    pub(crate) fn state(&self) -> State {
        state(self.its.status, self.its.probing, self.its.consecutive_failures)
    }

    /// How much is taken a second.
    pub(crate) fn rate(&self) -> String {
        rate(self.its.rates.delivered.minute)
    }
}

/// Where a subscription stands, in a word.
pub(crate) fn state(status: SubscriptionStatus, probing: bool, failures: u32) -> State {
    match status {
        SubscriptionStatus::Active if probing => State::bad("probing"),
        SubscriptionStatus::Active if failures > 0 => State::fair("failing"),
        status => State::of(status),
    }
}

/// Which subscriptions to give.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) order: SummaryOrder,
    pub(crate) resource: Option<ResourceId>,
    pub(crate) status: Option<SubscriptionStatus>,
    /// A part of the URL, or the id.
    pub(crate) search: String,
}

impl Wanted {
    fn query(&self, page: Page) -> OverviewQuery {
        let query = OverviewQuery::new(page).by(self.order);
        let query = self.status.map_or(query, |status| query.status(status));
        self.resource.map_or(query, |resource| query.resource(resource))
    }
}

/// What a client is called that has no URL.
const PULLED: &str = "pulled by its client";

/// What a subscription is called: where its notifications go.
pub(crate) fn name(subscription: &Subscription) -> String {
    let endpoint = subscription.spec.endpoint();
    let own = || {
        let mut actions = flare_core::model::Action::ALL.into_iter();
        actions.find_map(|action| endpoint.action(action)?.url())
    };
    endpoint.url().or_else(own).map_or_else(|| PULLED.to_owned(), ToString::to_string)
}

/// One part of those that are wanted.
pub(crate) async fn lines(flare: &Flare, wanted: &Wanted, part: Part) -> Result<(Vec<Line>, Part)> {
    let search = wanted.search.to_lowercase();
    if search.is_empty() {
        let found = flare.overview(wanted.query(part.page())).await?;
        return Ok((found.items.into_iter().map(Line::from).collect(), part.of(found.total)));
    }
    let all = flare.overview(wanted.query(Page::new(u32::MAX, 0))).await?;
    let fits = |line: &Line| {
        line.name.to_lowercase().contains(&search) || line.its.id.to_string() == search
    };
    Ok(part.take(all.items.into_iter().map(Line::from).filter(fits).collect()))
}

/// Those that are furthest behind, so many at most, and all subscriptions together.
pub(crate) async fn furthest(
    flare: &Flare,
    most: u32,
) -> Result<(Vec<Line>, SubscriptionOverview)> {
    let mut found = flare.overview(Wanted::default().query(Page::new(most, 0))).await?;
    let behind = std::mem::take(&mut found.items).into_iter().filter(|it| it.lag > 0);
    Ok((behind.map(Line::from).collect(), found))
}
