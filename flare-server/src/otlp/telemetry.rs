//! Takes `[otlp]`; gives exporters to one collector, and what hands them spans and figures. Ends by sending what is
//! left, in a limited time.

use std::collections::HashMap;
use std::time::Duration;

use axum::{Router, middleware};
use flare_core::FlareBuilder;
use metrics_exporter_prometheus::{PrometheusHandle, PrometheusRecorder};
use metrics_util::layers::FanoutBuilder;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use tracing::warn;

use super::client::{CollectorClient, LIMIT};
use super::figures::Figures;
use super::requests;
use super::spans::{Spans, current_trace};
use crate::config::{Otlp, Signal};
use crate::failure::Failure;
use crate::version;

/// What spans and figures are said to be of.
const SCOPE: &str = "flare";

/// A collector that is away must not keep a server that ends.
const LAST: Duration = Duration::from_secs(2);

/// Exporters that run.
#[derive(Debug)]
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    figures: Option<SdkMeterProvider>,
}

impl Telemetry {
    /// Starts what the configuration asks for, if it asks for anything, on the runtime that this is called on.
    pub(crate) fn start(table: &Otlp) -> Result<Option<Self>, Failure> {
        if table.endpoint.is_empty() {
            return Ok(None);
        }
        let client = CollectorClient::new()?;
        let of = resource(table);
        let traces = table.sends(Signal::Traces).then(|| traces(table, &of, client.clone()));
        let figures = table.sends(Signal::Metrics).then(|| figures(table, &of, client));
        Ok(Some(Self { traces: traces.transpose()?, figures: figures.transpose()? }))
    }

    fn tracer(&self) -> Option<SdkTracer> {
        self.traces.as_ref().map(|provider| provider.tracer(SCOPE))
    }

    /// What hands spans to the collector, beside the log.
    pub(crate) fn spans(&self) -> Option<Spans> {
        self.tracer().map(Spans)
    }

    /// Has what is pulled told to clients in the trace that it is recorded in.
    pub(crate) fn within(&self, builder: FlareBuilder) -> FlareBuilder {
        match &self.traces {
            Some(_) => builder.current_trace(current_trace),
            None => builder,
        }
    }

    /// Has everything counted for Prometheus and for the collector.
    pub(crate) fn beside(
        &self,
        prometheus: PrometheusRecorder,
    ) -> Result<PrometheusHandle, Failure> {
        let handle = prometheus.handle();
        let both = FanoutBuilder::default().add_recorder(prometheus);
        let both = match &self.figures {
            Some(provider) => both.add_recorder(Figures(provider.meter(SCOPE))),
            None => both,
        };
        // The error carries the recorders, which do not go from thread to thread.
        let set = metrics::set_global_recorder(both.build());
        set.map_err(|error| failed(error.to_string()))?;
        Ok(handle)
    }

    /// Has each request traced.
    pub(crate) fn around(&self, router: Router) -> Router {
        match self.tracer() {
            Some(tracer) => router.layer(middleware::from_fn_with_state(tracer, requests::trace)),
            None => router,
        }
    }

    /// Sends what is left.
    pub(crate) fn end(&self) {
        let traces = self.traces.as_ref().map(|it| it.shutdown_with_timeout(LAST));
        let figures = self.figures.as_ref().map(|it| it.shutdown_with_timeout(LAST));
        for ended in [traces, figures].into_iter().flatten() {
            if let Err(error) = ended {
                warn!(%error, "what was left of traces or metrics may not have reached otlp.endpoint");
            }
        }
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure::because("cannot send telemetry as [otlp] says", error)
}

fn traces(
    table: &Otlp,
    of: &Resource,
    client: CollectorClient,
) -> Result<SdkTracerProvider, Failure> {
    let exporter = SpanExporter::builder().with_http().with_http_client(client);
    let exporter = exporter.with_endpoint(url(table, "traces")).with_timeout(LIMIT);
    let exporter = exporter.with_headers(headers(table)).build().map_err(failed)?;
    let share = Sampler::TraceIdRatioBased(f64::from(table.sample) / 100.0);
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
    Ok(provider.with_sampler(Sampler::parent_based(share)).with_resource(of.clone()).build())
}

fn figures(
    table: &Otlp,
    of: &Resource,
    client: CollectorClient,
) -> Result<SdkMeterProvider, Failure> {
    let exporter = MetricExporter::builder().with_http().with_http_client(client);
    let exporter = exporter.with_endpoint(url(table, "metrics")).with_timeout(LIMIT);
    let exporter = exporter.with_headers(headers(table)).build().map_err(failed)?;
    let reader = PeriodicReader::builder(exporter).with_interval(table.interval).build();
    Ok(SdkMeterProvider::builder().with_reader(reader).with_resource(of.clone()).build())
}

fn url(table: &Otlp, signal: &str) -> String {
    format!("{}/v1/{signal}", table.endpoint.trim_end_matches('/'))
}

fn headers(table: &Otlp) -> HashMap<String, String> {
    let parts = table.headers.iter().filter_map(|header| header.parts());
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn resource(table: &Otlp) -> Resource {
    let version = KeyValue::new("service.version", version::VERSION);
    // Two nodes of one service must not be taken for one.
    let instance = format!("{:032x}", fastrand::u128(..));
    let instance = KeyValue::new("service.instance.id", instance);
    let resource = Resource::builder().with_service_name(table.service.clone());
    resource.with_attributes([version, instance]).build()
}
