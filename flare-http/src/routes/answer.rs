//! Takes what a route has to say; gives the answer.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use flare_core::{Error, ErrorKind};
use serde::Serialize;

use crate::problem::Problem;

/// What every route gives.
pub(super) type Answer = Result<Response, Problem>;

/// An answer with JSON.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Answer {
    let body = serde_json::to_vec(value)
        .map_err(|source| Error::new(ErrorKind::Internal, "answer").with_source(source))?;
    Ok((status, [(CONTENT_TYPE, "application/json")], body).into_response())
}
