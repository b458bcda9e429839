//! Takes requests to operate a consumer; gives what the handle says. Each may be repeated.

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use super::consumers::shown;
use crate::extract::{Acting, ConsumerOnly, NoQuery, Operation, Paging};
use crate::options::State;
use crate::wire::consumer::{ConsumerPath, ConsumerView};
use crate::wire::consumer_report::ConsumerReportView;
use crate::wire::json::read;
use crate::wire::operation::Nothing;
use crate::wire::page::PageQuery;
use crate::wire::reject::{RejectList, RetriedView, RetryInput};

/// How a consumer is doing: which node works it, what it counted, and what went wrong.
#[utoipa::path(get, operation_id = "readConsumerStatus", path = "/consumers/{id}/status", tag = "consumer operations",
    params(ConsumerPath),
    responses((status = 200, description = "How it is doing", body = ConsumerReportView)))]
pub(crate) async fn status(
    Shared(state): Shared<State>,
    ConsumerOnly(id): ConsumerOnly,
    _: NoQuery,
) -> Answer {
    let report = state.flare().consumer_status(id).await?;
    json(StatusCode::OK, &ConsumerReportView::from(report))
}

/// Stops pulling until the consumer is resumed. Within a second nothing more is received.
#[utoipa::path(post, operation_id = "pauseConsumer", path = "/consumers/{id}/pause", tag = "consumer operations",
    params(ConsumerPath), request_body = Nothing,
    responses((status = 200, description = "It is paused", body = ConsumerView, headers(
        ("ETag" = String, description = "Its generation")))))]
pub(crate) async fn pause(
    Acting(state): Acting,
    ConsumerOnly(id): ConsumerOnly,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    shown(StatusCode::OK, state.flare().pause_consumer(id).await?)
}

/// Goes on pulling where the consumer was paused.
#[utoipa::path(post, operation_id = "resumeConsumer", path = "/consumers/{id}/resume", tag = "consumer operations",
    params(ConsumerPath), request_body = Nothing,
    responses((status = 200, description = "It is active", body = ConsumerView, headers(
        ("ETag" = String, description = "Its generation")))))]
pub(crate) async fn resume(
    Acting(state): Acting,
    ConsumerOnly(id): ConsumerOnly,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    shown(StatusCode::OK, state.flare().resume_consumer(id).await?)
}

/// Lists the messages that became no document, oldest rejection first. The last 1,000 are kept.
#[utoipa::path(get, operation_id = "listRejects", path = "/consumers/{id}/rejects", tag = "consumer operations",
    params(ConsumerPath, PageQuery),
    responses((status = 200, description = "A page of them", body = RejectList)))]
pub(crate) async fn rejects(
    Shared(state): Shared<State>,
    ConsumerOnly(id): ConsumerOnly,
    Paging(page): Paging,
) -> Answer {
    let listing = state.flare().rejects(id, page).await?;
    json(StatusCode::OK, &RejectList::new(page, listing))
}

/// Tries rejects again by the mapping that the consumer has now: those named, or all.
#[utoipa::path(post, operation_id = "retryRejects", path = "/consumers/{id}/rejects/retry", tag = "consumer operations",
    params(ConsumerPath), request_body = RetryInput,
    responses((status = 200, description = "What became of them", body = RetriedView)))]
pub(crate) async fn retry(
    Acting(state): Acting,
    ConsumerOnly(id): ConsumerOnly,
    _: NoQuery,
    Operation(body): Operation,
) -> Answer {
    let input = body.map(|body| read::<RetryInput>(&body)).transpose()?.unwrap_or_default();
    let retried = match input.ids()? {
        Some(ids) => state.flare().retry_rejects(id, ids).await?,
        None => state.flare().retry_all_rejects(id).await?,
    };
    json(StatusCode::OK, &RetriedView::from(retried))
}
