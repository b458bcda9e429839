//! Takes the making of a connection; gives it a deadline. Connections are made deep inside the
//! HTTP client; ending them there, rather than from outside, is what makes it certain that nothing
//! of the request was sent.

use std::error::Error as StdError;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, poll_fn};
use tower_layer::Layer;
use tower_service::Service;

use super::attempt_scope;
use crate::model::duration::format_duration;
use crate::port::Clock;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Gives every connection being made a deadline: the connect timeout, or the end of the attempt
/// that asked for it, whichever is earlier.
#[derive(Clone)]
pub(super) struct DeadlineLayer {
    clock: Arc<dyn Clock>,
    timeout: Duration,
}

impl DeadlineLayer {
    pub(super) fn new(clock: Arc<dyn Clock>, timeout: Duration) -> Self {
        Self { clock, timeout }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Bounded<S>;

    fn layer(&self, connector: S) -> Bounded<S> {
        Bounded { connector, layer: self.clone() }
    }
}

/// A connector with a deadline.
#[derive(Clone)]
pub(super) struct Bounded<S> {
    connector: S,
    layer: DeadlineLayer,
}

impl<S, R> Service<R> for Bounded<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let DeadlineLayer { clock, timeout } = self.layer.clone();
        let now = clock.monotonic();
        let by_timeout = now.saturating_add(timeout);
        let deadline = attempt_scope::ends().map_or(by_timeout, |ends| by_timeout.min(ends));
        let late = NotConnected { timeout: (deadline == by_timeout).then_some(timeout) };
        let connecting = self.connector.call(request);
        Box::pin(async move {
            let mut connecting = pin!(connecting);
            let mut alarm = clock.sleep(deadline.saturating_sub(now));
            poll_fn(|context| {
                if let Poll::Ready(connected) = connecting.as_mut().poll(context) {
                    if connected.is_ok() {
                        let connected_at = clock.monotonic();
                        attempt_scope::connected(connected_at.saturating_sub(now), connected_at);
                    }
                    return Poll::Ready(connected);
                }
                // The clock is asked too: when the attempt's own alarm wakes this task first, the
                // answer must be here before the attempt gives up from outside.
                if clock.monotonic() >= deadline || alarm.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(BoxError::from(late)));
                }
                Poll::Pending
            })
            .await
        })
    }
}

/// No connection was made in time.
#[derive(Debug, Clone, Copy)]
pub(super) struct NotConnected {
    /// The connect timeout, unless it was the attempt's that ran out.
    pub(super) timeout: Option<Duration>,
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.timeout {
            Some(timeout) => write!(f, "no connection within {}", format_duration(timeout)),
            None => f.write_str("no connection within the attempt's time"),
        }
    }
}

impl StdError for NotConnected {}
