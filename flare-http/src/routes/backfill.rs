//! Takes wishes for documents that are there already; gives what the handle says. Each may be repeated.

use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::answer::{Answer, json};
use super::subscriptions::find;
use crate::extract::{Acting, Ids, NoQuery, Operation};
use crate::wire::json::read;
use crate::wire::operation::{Nothing, ResyncInput};
use crate::wire::report::ReportView;
use crate::wire::subscription::SubscriptionPath;

/// Delivers the documents that are there and that the client does not hold.
#[utoipa::path(post, operation_id = "backfillSubscription", path = "/resources/{rid}/subscriptions/{id}/backfill", tag = "operations",
    params(SubscriptionPath), request_body = Nothing,
    responses((status = 202, description = "It is under way; the status shows how far it is", body = ReportView)))]
pub(crate) async fn backfill(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    find(&state, resource, id).await?;
    state.flare().backfill(id).await?;
    let report = state.flare().subscription_status(id).await?;
    json(StatusCode::ACCEPTED, &ReportView::from(report))
}

/// Ends a backfill that is under way; what it has made pending is delivered all the same.
#[utoipa::path(delete, operation_id = "cancelBackfill", path = "/resources/{rid}/subscriptions/{id}/backfill", tag = "operations",
    params(SubscriptionPath),
    responses((status = 204, description = "None is under way")))]
pub(crate) async fn cancel_backfill(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
) -> Answer {
    find(&state, resource, id).await?;
    state.flare().cancel_backfill(id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Delivers everything again to a client that lost its data, or what is below a URL.
#[utoipa::path(post, operation_id = "resyncSubscription", path = "/resources/{rid}/subscriptions/{id}/resync", tag = "operations",
    params(SubscriptionPath), request_body = ResyncInput,
    responses(
        (status = 202, description = "It is under way; the status shows how far it is", body = ReportView),
        (status = 409, description = "A resync of other documents is under way"),
    ))]
pub(crate) async fn resync(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    Operation(body): Operation,
) -> Answer {
    let input = body.map(|body| read::<ResyncInput>(&body)).transpose()?.unwrap_or_default();
    find(&state, resource, id).await?;
    state.flare().resync(id, input.prefix.as_deref()).await?;
    let report = state.flare().subscription_status(id).await?;
    json(StatusCode::ACCEPTED, &ReportView::from(report))
}

/// Ends a resync that is under way; what it has made pending is delivered all the same.
#[utoipa::path(delete, operation_id = "cancelResync", path = "/resources/{rid}/subscriptions/{id}/resync", tag = "operations",
    params(SubscriptionPath),
    responses((status = 204, description = "None is under way")))]
pub(crate) async fn cancel_resync(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
) -> Answer {
    find(&state, resource, id).await?;
    state.flare().cancel_resync(id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
