//! Takes a filter and a document; gives what the one says of the other.

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use crate::extract::{JsonBody, NoQuery};
use crate::options::State;
use crate::wire::filter::{FilterTest, FilterTested};
use crate::wire::json::read;

/// Tries a filter on a document. Nothing is stored.
#[utoipa::path(post, operation_id = "testFilter", path = "/filters/test", tag = "subscriptions",
    request_body = FilterTest,
    responses((status = 200, description = "What it says", body = FilterTested)))]
pub(crate) async fn test(
    Shared(state): Shared<State>,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let FilterTest { filter, document, params } = read(&body)?;
    let params = params.map(|it| it.0).unwrap_or_default();
    let params = params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let tried = state.flare().test_filter(&filter, document.as_bytes(), params)?;
    json(StatusCode::OK, &FilterTested::from(tried))
}
