//! Takes each request of the interface; gives it a span of its own, in the trace of whoever sends it or a new one,
//! and goes on with that: what is put is told to clients in the same trace.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;

use super::spans::{span_context, traceparent};

const TRACEPARENT: &str = "traceparent";

pub(super) async fn trace(
    State(tracer): State<SdkTracer>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(TRACEPARENT).and_then(|value| value.to_str().ok());
    let parent = match given.and_then(span_context) {
        Some(parent) => Context::new().with_remote_span_context(parent),
        None => Context::new(),
    };
    let method = request.method().as_str().to_owned();
    let path = request.uri().path().to_owned();
    let attributes =
        [KeyValue::new("http.request.method", method.clone()), KeyValue::new("url.path", path)];
    let builder = tracer.span_builder(method).with_kind(SpanKind::Server);
    let span = tracer.build_with_context(builder.with_attributes(attributes), &parent);
    let context = Context::new().with_span(span);
    // Hex digits always make a header.
    if let Ok(value) = HeaderValue::from_str(&traceparent(context.span().span_context())) {
        request.headers_mut().insert(TRACEPARENT, value);
    }
    let response = next.run(request).with_context(context.clone()).await;
    let status = response.status();
    let span = context.span();
    span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
    if status.is_server_error() {
        span.set_status(Status::error(status.to_string()));
    }
    span.end();
    response
}
