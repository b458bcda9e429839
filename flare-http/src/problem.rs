//! Takes what went wrong, in Flare or in a request; gives the one shape errors are answered in.
//! Says of faults of our own only that they are: the log has the rest.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flare_core::model::Invalid;
use flare_core::{Error, ErrorKind, Retry};

use crate::wire::problem::{ErrorBody, ErrorObject};

/// How long to stay away where nobody knows better.
pub(crate) const RETRY_LATER: Duration = Duration::from_secs(1);
/// The longest detail and field that are answered: they may repeat what a user made up.
const MAX_DETAIL_CHARS: usize = 1_024;
const MAX_FIELD_CHARS: usize = 256;

/// A refusal or fault, answered as `{"error":{"status","title","detail"?,"field"?}}`.
///
/// A host's own layers may answer with it too, so that clients see one shape.
///
/// ```
/// use axum::http::StatusCode;
/// use flare_http::Problem;
///
/// let problem = Problem::new(StatusCode::FORBIDDEN).detail("this tenant is closed");
/// assert_eq!(problem.status(), StatusCode::FORBIDDEN);
/// ```
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    detail: Cow<'static, str>,
    field: Option<String>,
    retry_after: Option<Duration>,
    source: Option<Error>,
}

/// What a fault of our own leaves with its answer, for whoever logs it.
#[derive(Debug, Clone)]
pub(crate) struct Fault(pub(crate) Error);

impl Problem {
    /// A problem of this status.
    pub fn new(status: StatusCode) -> Self {
        Self { status, detail: Cow::Borrowed(""), field: None, retry_after: None, source: None }
    }

    /// Says in words what is wrong.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Names the field, parameter or header at fault.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Asks the client to come back, but not earlier.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }

    /// The status it is answered with.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What is wrong, in words that may be shown; empty if the status says it all.
    pub fn reason(&self) -> &str {
        &self.detail
    }

    /// The field, parameter or header at fault.
    pub fn field_name(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The fault of our own behind it, for a log and for nobody else.
    pub fn error(&self) -> Option<&Error> {
        self.source.as_ref()
    }

    /// The fault behind it, for the log.
    pub(crate) fn fault(mut self, error: Error) -> Self {
        self.source = Some(error);
        self
    }

    /// A refused input.
    pub(crate) fn invalid(field: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST).field(field).detail(detail)
    }

    /// Something that is not there.
    pub(crate) fn not_found(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND).detail(detail)
    }

    /// A condition of the request (`If-Match`) that does not hold.
    pub(crate) fn outdated() -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED)
            .field("If-Match")
            .detail("it has changed since: read it again")
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        let problem = Self::new(StatusCode::BAD_REQUEST).detail(invalid.reason().to_owned());
        match invalid.field() {
            "" => problem,
            field => problem.field(field),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match error.unreadable() {
            // It is there, and whoever can read it can do what is asked; here its state forbids it.
            Some(_) => StatusCode::CONFLICT,
            None => status_of(error.kind()),
        };
        let mut problem = Self::new(status);
        problem.detail = match error.kind() {
            ErrorKind::Unavailable => "a store cannot be reached".into(),
            ErrorKind::Timeout => {
                "a store did not answer in time; whether it took effect is unknown".into()
            }
            _ if status.is_server_error() => "the log has more, under this request's id".into(),
            _ => error.detail().to_owned().into(),
        };
        problem.field = error.field().filter(|_| status.is_client_error()).map(str::to_owned);
        problem.retry_after = match (error.retryable(), status) {
            (Retry::After(time), _) => Some(time),
            (_, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                Some(RETRY_LATER)
            }
            _ => None,
        };
        problem.source = Some(error).filter(|_| status.is_server_error());
        problem
    }
}

/// The status each kind of error is answered with.
fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        // Ours is full, and the client can help by slowing down.
        ErrorKind::Busy => StatusCode::TOO_MANY_REQUESTS,
        // A store is away or slow, and the client can only come back.
        ErrorKind::Unavailable | ErrorKind::Timeout => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let detail = shortened(&self.detail, MAX_DETAIL_CHARS);
        let body = ErrorBody {
            error: ErrorObject {
                status: self.status.as_u16(),
                title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
                detail: Some(detail).filter(|detail| !detail.is_empty()),
                field: self.field.map(|field| shortened(&field, MAX_FIELD_CHARS)),
            },
        };
        // Strings and a number: they cannot fail to be written.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response =
            (self.status, [(CONTENT_TYPE, "application/json")], body).into_response();
        if let Some(time) = self.retry_after {
            // Rounded up, for a client that comes early comes in vain.
            let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if let Some(error) = self.source {
            response.extensions_mut().insert(Fault(error));
        }
        response
    }
}

/// A path may hold keys the user made up: one of any length is not sent back whole.
pub(crate) fn shortened_field(invalid: Invalid) -> Invalid {
    let field = shortened(invalid.field(), MAX_FIELD_CHARS);
    Invalid::new(field, invalid.reason().to_owned())
}

fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_status_the_documentation_says() {
        use ErrorKind::*;
        for (kind, status) in [
            (Invalid, 400),
            (NotFound, 404),
            (Conflict, 409),
            (TooLarge, 413),
            (Busy, 429),
            (Unavailable, 503),
            (Timeout, 503),
            (Denied, 500),
            (Lost, 500),
            (Compacted, 500),
            (Corrupt, 500),
            (Unsupported, 500),
            (Internal, 500),
        ] {
            let problem = Problem::from(Error::new(kind, "call").with_detail("a secret of ours"));
            assert_eq!(problem.status().as_u16(), status, "{kind}");
            let response = problem.into_response();
            let pushes_back = matches!(status, 429 | 503);
            assert_eq!(response.headers().contains_key(RETRY_AFTER), pushes_back, "{kind}");
            assert_eq!(response.extensions().get::<Fault>().is_some(), status >= 500, "{kind}");
        }
    }

    #[test]
    fn a_fault_of_ours_shows_nothing_of_the_inside() {
        let error =
            Error::new(ErrorKind::Corrupt, "read").with_field("row").with_detail("at /var/secret");
        let problem = Problem::from(error);
        assert!(!problem.detail.contains("secret") && problem.field.is_none(), "{problem:?}");
    }

    #[test]
    fn the_time_to_stay_away_is_rounded_up() {
        let retry = Retry::After(Duration::from_millis(1_500));
        let error = Error::new(ErrorKind::Busy, "put").with_retry(retry);
        let response = Problem::from(error).into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "2");
    }
}
