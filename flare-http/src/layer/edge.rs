//! Takes a request as it comes in; gives it an id and a span, and its answer the id, whatever
//! happens inside. The one place that logs what went wrong with a request.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tracing::{Instrument, error, field, info_span};

use super::timeout::{Reading, within};
use crate::auth::Caller;
use crate::observe;
use crate::options::State;
use crate::problem::{Fault, Problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that is taken over from a client: it goes into every line of the log.
const MAX_ID_BYTES: usize = 128;

/// Runs a request inside its span, within its time, and answers even if it panics.
pub(crate) async fn edge(
    Shared(state): Shared<State>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = request_id(request.headers());
    let reading = Reading::default();
    request.extensions_mut().insert(reading.clone());
    let span = info_span!(
        observe::REQUEST,
        id = id.to_str().unwrap_or_default(),
        method = %request.method(),
        path = request.uri().path(),
        caller = field::Empty,
        status = field::Empty,
    );
    if let Some(caller) = request.extensions().get::<Caller>() {
        span.record(observe::CALLER, caller.name());
    }
    let recorded = span.clone();
    let work = async move {
        let work = AssertUnwindSafe(within(&state, &reading, next.run(request)));
        let mut response = match work.catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                error!(panic = words(&*panic), "a request panicked");
                let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR);
                problem.detail("the log has more, under this request's id").into_response()
            }
        };
        recorded.record("status", response.status().as_u16());
        if let Some(Fault(fault)) = response.extensions_mut().remove() {
            let commit = state.options().commit.as_deref();
            error!(error = ?fault, origin = %fault.origin(), commit, "a request failed");
        }
        response.headers_mut().insert(REQUEST_ID, id);
        response
    };
    work.instrument(span).await
}

/// The client's own id if it is fit for a log, else a fresh one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let sane = |id: &&HeaderValue| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        (1..=MAX_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().all(plain)
    };
    let given = headers.get(REQUEST_ID).filter(sane).cloned();
    given.unwrap_or_else(|| {
        let fresh = format!("{:032x}", fastrand::u128(..));
        // Hex digits always make a header.
        HeaderValue::from_str(&fresh).unwrap_or(HeaderValue::from_static("unknown"))
    })
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        let given = |id: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(id).unwrap());
            request_id(&headers)
        };
        assert_eq!(given(b"order-7.a:b"), "order-7.a:b");
        for other in [&b""[..], b"two words", b"\xff", &[b'a'; 129]] {
            let id = given(other);
            assert_eq!((id.len(), id.as_bytes() == other), (32, false));
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
