//! Takes the question who is behind; gives what the handle says.

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use crate::extract::Ordered;
use crate::options::State;
use crate::wire::overview::{OverviewParams, SubscriptionOverviewList};

/// Lists the subscriptions of all resources with their lag, failures and rates, those first that are furthest behind. It
/// is about a second old at most.
#[utoipa::path(get, operation_id = "listAllSubscriptions", path = "/subscriptions", tag = "subscriptions",
    params(OverviewParams),
    responses((status = 200, description = "A page of them", body = SubscriptionOverviewList)))]
pub(crate) async fn list(Shared(state): Shared<State>, Ordered(query): Ordered) -> Answer {
    let overview = state.flare().overview(query).await?;
    json(StatusCode::OK, &SubscriptionOverviewList::new(query.page, overview))
}
