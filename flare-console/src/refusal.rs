//! Takes what went wrong; gives an answer that the edge makes a page of. Says nothing of the inside.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use flare_core::Error;
use flare_core::model::Invalid;
use flare_http::Problem;

/// Why a page cannot be given.
#[derive(Debug, Clone)]
pub(crate) struct Refusal(pub(crate) Problem);

/// What a page's handler gives.
pub(crate) type Answer = Result<Response, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Problem::new(status).detail(detail.into()))
    }

    /// Something that is not there. What is not an id is the id of nothing.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("There is no {what} {id}."))
    }

    /// Whether the one who asked can mend it, on the form they sent.
    pub(crate) fn is_theirs(&self) -> bool {
        let status = self.0.status();
        status.is_client_error() && status != StatusCode::NOT_FOUND
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error.into())
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self(invalid.into())
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

/// A template that cannot be written is a fault of ours.
impl From<askama::Error> for Refusal {
    fn from(source: askama::Error) -> Self {
        Error::new(flare_core::ErrorKind::Internal, "page").with_source(source).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.0.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}
