//! Takes a request's work and how long it may take; gives its answer, or the refusal when time is
//! up. Awaits the clock it is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use flare_core::{Error, ErrorKind};
use futures::future::{Either, select};

use crate::options::State;
use crate::problem::Problem;

/// Whether a request's body is still being read: then the client is the slow one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading(Arc<AtomicBool>);

impl Reading {
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The answer of `work`, or who was too slow: 408 the client, 503 Flare or its stores.
pub(crate) async fn within(
    state: &State,
    reading: &Reading,
    work: impl Future<Output = Response>,
) -> Response {
    let options = state.options();
    let limit = options.timeout;
    let up = options.clock.sleep(limit);
    match select(Box::pin(work), up).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) if reading.0.load(Ordering::Relaxed) => {
            let detail = format!("the body did not arrive within {limit:?}");
            Problem::new(StatusCode::REQUEST_TIMEOUT).detail(detail).into_response()
        }
        Either::Right(_) => {
            let detail =
                format!("there was no answer within {limit:?}; whether it took effect is unknown");
            let fault = Error::new(ErrorKind::Timeout, "request").with_detail(detail.clone());
            Problem::new(StatusCode::SERVICE_UNAVAILABLE)
                .detail(detail)
                .fault(fault)
                .retry_after(Duration::from_secs(1))
                .into_response()
        }
    }
}
