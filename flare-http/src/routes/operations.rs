//! Takes requests to operate a subscription; gives what the handle says. Each may be repeated.

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use super::subscriptions::{find, look, shown};
use crate::extract::{Acting, Ids, NoQuery, Operation, Paging};
use crate::options::State;
use crate::wire::dead_letter::{DeadLetterList, ReplayInput, Replayed};
use crate::wire::json::read;
use crate::wire::operation::Nothing;
use crate::wire::page::PageQuery;
use crate::wire::report::ReportView;
use crate::wire::subscription::{SubscriptionPath, SubscriptionView};

/// How a subscription is doing: how far behind its client is, and what became of the attempts.
#[utoipa::path(get, operation_id = "readSubscriptionStatus", path = "/resources/{rid}/subscriptions/{id}/status", tag = "operations",
    params(SubscriptionPath),
    responses((status = 200, description = "How it is doing", body = ReportView)))]
pub(crate) async fn status(
    Shared(state): Shared<State>,
    Ids(resource, id): Ids,
    _: NoQuery,
) -> Answer {
    // One that cannot be read has a status all the same.
    _ = look(&state, resource, id).await?;
    let report = state.flare().subscription_status(id).await?;
    json(StatusCode::OK, &ReportView::from(report))
}

/// Holds the changes of a subscription until it is resumed.
#[utoipa::path(post, operation_id = "pauseSubscription", path = "/resources/{rid}/subscriptions/{id}/pause", tag = "operations",
    params(SubscriptionPath), request_body = Nothing,
    responses((status = 200, description = "It is paused", body = SubscriptionView, headers(
        ("ETag" = String, description = "Its generation")))))]
pub(crate) async fn pause(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    find(&state, resource, id).await?;
    shown(StatusCode::OK, state.flare().pause(id).await?)
}

/// Ends a pause or suspension: what was held is due at once.
#[utoipa::path(post, operation_id = "resumeSubscription", path = "/resources/{rid}/subscriptions/{id}/resume", tag = "operations",
    params(SubscriptionPath), request_body = Nothing,
    responses((status = 200, description = "It is active", body = SubscriptionView, headers(
        ("ETag" = String, description = "Its generation")))))]
pub(crate) async fn resume(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    find(&state, resource, id).await?;
    shown(StatusCode::OK, state.flare().resume(id).await?)
}

/// Tries a client now that is down, or waits for a later attempt.
#[utoipa::path(post, operation_id = "retrySubscription", path = "/resources/{rid}/subscriptions/{id}/retry", tag = "operations",
    params(SubscriptionPath), request_body = Nothing,
    responses(
        (status = 200, description = "It is tried now", body = SubscriptionView, headers(
            ("ETag" = String, description = "Its generation"))),
        (status = 409, description = "It is paused or suspended"),
    ))]
pub(crate) async fn retry(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    find(&state, resource, id).await?;
    shown(StatusCode::OK, state.flare().retry_now(id).await?)
}

/// Tries notifications that were given up again: those named, or all.
#[utoipa::path(post, operation_id = "replayDeadLetters", path = "/resources/{rid}/subscriptions/{id}/replay", tag = "operations",
    params(SubscriptionPath), request_body = ReplayInput,
    responses((status = 202, description = "They are due now", body = Replayed)))]
pub(crate) async fn replay(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    Operation(body): Operation,
) -> Answer {
    let input = body.map(|body| read::<ReplayInput>(&body)).transpose()?.unwrap_or_default();
    find(&state, resource, id).await?;
    let replayed = match input.ids()? {
        Some(ids) => state.flare().replay(id, ids).await?,
        None => state.flare().replay_all(id).await?,
    };
    json(StatusCode::ACCEPTED, &Replayed { replayed })
}

/// Lists the notifications that were given up, oldest death first.
#[utoipa::path(get, operation_id = "listDeadLetters", path = "/resources/{rid}/subscriptions/{id}/dead-letters", tag = "operations",
    params(SubscriptionPath, PageQuery),
    responses((status = 200, description = "A page of them", body = DeadLetterList)))]
pub(crate) async fn dead_letters(
    Shared(state): Shared<State>,
    Ids(resource, id): Ids,
    Paging(page): Paging,
) -> Answer {
    find(&state, resource, id).await?;
    let listing = state.flare().dead_letters(id, page).await?;
    json(StatusCode::OK, &DeadLetterList::new(page, listing))
}
