//! Takes requests of clients that take changes when they like; gives what the handle says.

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use super::subscriptions::find;
use crate::extract::{Ids, JsonBody, NoQuery};
use crate::options::State;
use crate::problem::Problem;
use crate::wire::json::read;
use crate::wire::passive::{Demand, Demanded, PullInput, PulledList, Settle, SettledList};
use crate::wire::subscription::SubscriptionPath;

/// Has what waits for a passive subscription's client sent to it.
#[utoipa::path(post, operation_id = "demandNotifications", path = "/resources/{rid}/subscriptions/{id}/demand", tag = "passive mode",
    params(SubscriptionPath), request_body = Demand,
    responses(
        (status = 202, description = "They are being sent", body = Demanded),
        (status = 409, description = "It is not passive, is paused or suspended, or has no endpoint"),
    ))]
pub(crate) async fn demand(
    Shared(state): Shared<State>,
    Ids(resource, id): Ids,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    find(&state, resource, id).await?;
    let wanted: Demand = read(&body)?;
    let delivering = state.flare().demand(id, wanted.quantity.0.into()).await?;
    json(StatusCode::ACCEPTED, &Demanded { delivering })
}

/// Hands out what waits for a passive subscription's client, each with a receipt.
#[utoipa::path(post, operation_id = "pullNotifications", path = "/resources/{rid}/subscriptions/{id}/pull", tag = "passive mode",
    params(SubscriptionPath), request_body = PullInput,
    responses(
        (status = 200, description = "What was waiting, or came in time", body = PulledList),
        (status = 409, description = "It is not passive, or is paused or suspended"),
    ))]
pub(crate) async fn pull(
    Shared(state): Shared<State>,
    Ids(resource, id): Ids,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    find(&state, resource, id).await?;
    let wanted: PullInput = read(&body)?;
    let pulled = state.flare().pull(id, wanted.wanted()).await?;
    let list = PulledList::new(pulled).map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR).detail(error.to_string())
    })?;
    json(StatusCode::OK, &list)
}

/// Takes what became of notifications that were handed out.
#[utoipa::path(post, operation_id = "settleNotifications", path = "/resources/{rid}/subscriptions/{id}/settle", tag = "passive mode",
    params(SubscriptionPath), request_body = Settle,
    responses((status = 200, description = "What became of each receipt", body = SettledList)))]
pub(crate) async fn settle(
    Shared(state): Shared<State>,
    Ids(resource, id): Ids,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    find(&state, resource, id).await?;
    let (receipts, outcomes) = read::<Settle>(&body)?.outcomes();
    let settled = state.flare().settle(id, outcomes).await?;
    json(StatusCode::OK, &SettledList::new(receipts, settled))
}
