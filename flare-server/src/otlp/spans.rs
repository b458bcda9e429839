//! Takes spans as they begin and end; gives those that say what happened to one request, one batch or one
//! notification to a tracer. Spans that last as long as a lane or a node do are no part of any trace: what happens
//! within them begins one of its own, or goes on with the trace its document was put with.

use std::fmt;

use flare_core::model::TraceContext;
use flare_core::observe;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer as _,
};
use opentelemetry::{Context, Key, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer;
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use tracing_subscriber::{Layer, Registry};

/// What lasts, and the span of the interface, whose place that of `requests` takes.
const NO_TRACES: [&str; 5] = [
    observe::LANE,
    observe::CONSUMER,
    observe::MEMBER,
    observe::LEAD,
    flare_http::observe::REQUEST,
];

/// Gives spans to a tracer.
#[derive(Debug)]
pub(crate) struct Spans(pub(super) SdkTracer);

/// A span that a tracer knows, beside the one of the log.
struct Traced(Span);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let name = span.name();
        if NO_TRACES.contains(&name) {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let kind = match name {
            observe::ATTEMPT => SpanKind::Client,
            observe::CONSUME => SpanKind::Consumer,
            _ => SpanKind::Internal,
        };
        let builder = self.0.span_builder(name).with_kind(kind).with_attributes(fields.attributes);
        let around = fields.trace.or_else(|| span.parent().and_then(|parent| traced(&parent)));
        let parent = match around {
            Some(around) => Context::new().with_remote_span_context(around),
            // The request that this is done for, if it is for one.
            None => Context::current(),
        };
        let traced = Traced(self.0.build_with_context(builder, &parent));
        span.extensions_mut().insert(traced);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: layer::Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(Traced(traced)) = span.extensions_mut().get_mut() {
            let mut fields = Fields::default();
            values.record(&mut fields);
            traced.set_attributes(fields.attributes);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        // More is the log's.
        if *event.metadata().level() > Level::WARN {
            return;
        }
        let Some(span) = context.event_span(event) else { return };
        if let Some(Traced(traced)) = span.extensions_mut().get_mut() {
            let mut fields = Fields::default();
            event.record(&mut fields);
            traced.add_event(event.metadata().level().as_str(), fields.attributes);
        }
    }

    fn on_close(&self, id: Id, context: layer::Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        if let Some(Traced(mut traced)) = span.extensions_mut().remove() {
            traced.end();
        }
    }
}

fn traced<'a, S: LookupSpan<'a>>(span: &SpanRef<'a, S>) -> Option<SpanContext> {
    span.extensions().get().map(|Traced(traced)| traced.span_context().clone())
}

/// The fields of a span, as a tracer takes them.
#[derive(Default)]
struct Fields {
    attributes: Vec<KeyValue>,
    /// The trace that is named by one of them.
    trace: Option<SpanContext>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(Key::from_static_str(field.name()), value));
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.add(field, value),
            Err(_) => self.add(field, value.to_string()),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "traceparent" {
            self.trace = span_context(&text);
        } else {
            self.add(field, text);
        }
    }
}

/// The span that a `traceparent` names.
pub(super) fn span_context(traceparent: &str) -> Option<SpanContext> {
    // It was checked when it was taken; one of a version to come begins as this does.
    let checked: TraceContext = traceparent.parse().ok()?;
    let mut parts = checked.as_str().split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    Some(SpanContext::new(trace, span, flags, true, TraceState::default()))
}

/// How others are told of a span.
pub(super) fn traceparent(of: &SpanContext) -> String {
    let (trace, id, flags) = (of.trace_id(), of.span_id(), of.trace_flags().to_u8());
    format!("00-{trace}-{id}-{flags:02x}")
}

/// The innermost span that is entered and in a trace, or else the request that is being answered.
pub(super) fn current_trace() -> Option<TraceContext> {
    let entered = tracing::dispatcher::get_default(|dispatch| {
        let registry = dispatch.downcast_ref::<Registry>()?;
        let innermost = registry.span(dispatch.current_span().id()?)?;
        innermost.scope().find_map(|span| traced(&span))
    });
    let of = entered.unwrap_or_else(|| Context::current().span().span_context().clone());
    of.is_valid().then(|| traceparent(&of))?.parse().ok()
}
