//! Takes `[otlp]`; gives what sends traces and figures to a collector, beside the log and Prometheus. Without the
//! feature `otlp` there is nothing to send: the configuration has been refused before.

#[cfg(feature = "otlp")]
mod client;
#[cfg(feature = "otlp")]
mod figures;
#[cfg(feature = "otlp")]
mod requests;
#[cfg(feature = "otlp")]
mod spans;
#[cfg(feature = "otlp")]
mod telemetry;

#[cfg(feature = "otlp")]
pub(crate) use telemetry::Telemetry;

#[cfg(not(feature = "otlp"))]
pub(crate) use absent::Telemetry;

#[cfg(not(feature = "otlp"))]
mod absent {
    use axum::Router;
    use flare_core::FlareBuilder;
    use metrics_exporter_prometheus::{PrometheusHandle, PrometheusRecorder};
    use tracing_subscriber::layer::Identity;

    use crate::config::Otlp;
    use crate::failure::Failure;

    /// What this program cannot send.
    pub(crate) enum Telemetry {}

    impl Telemetry {
        pub(crate) fn start(_: &Otlp) -> Result<Option<Self>, Failure> {
            Ok(None)
        }

        pub(crate) fn spans(&self) -> Option<Identity> {
            match *self {}
        }

        pub(crate) fn within(&self, _: FlareBuilder) -> FlareBuilder {
            match *self {}
        }

        pub(crate) fn beside(&self, _: PrometheusRecorder) -> Result<PrometheusHandle, Failure> {
            match *self {}
        }

        pub(crate) fn around(&self, _: Router) -> Router {
            match *self {}
        }

        pub(crate) fn end(&self) {
            match *self {}
        }
    }
}
