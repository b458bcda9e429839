//! Takes what the core counts; gives it as Prometheus reads it. Installed once, by the binary.

use std::time::Duration;

use flare_core::observe;
use flare_core::port::{Clock, SystemClock};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;

use crate::failure::Failure;
use crate::otlp::Telemetry;

/// How often figures that nobody fetched are folded together, so that they do not pile up.
const UPKEEP: Duration = Duration::from_secs(5);

/// From what a notification takes in one machine to what a client that was down for a day causes.
const LATENCIES: [f64; 13] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0];

/// From a request within one machine to one that ran out of time.
const REQUESTS: [f64; 11] = [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// What is not shown any more is forgotten after this time: figures of single subscriptions come and go. Everything else
/// is shown again every few minutes at least.
const FORGET_AFTER: Duration = Duration::from_hours(1);

/// From a hand-over within one machine to one that was forced.
const HAND_OVERS: [f64; 9] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];

/// What is measured, each with the bounds of its buckets.
const MEASURED: [(&str, &[f64]); 4] = [
    (observe::LATENCY, &LATENCIES),
    (observe::ATTEMPT_TIME, &REQUESTS),
    (observe::ATTEMPT_PHASE, &REQUESTS),
    (observe::CLUSTER_HAND_OVER, &HAND_OVERS),
];

/// The bounds of the buckets of what is measured under this name.
#[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "Prometheus takes all of them"))]
pub(crate) fn bounds(name: &str) -> Option<&'static [f64]> {
    MEASURED.iter().find(|(measured, _)| *measured == name).map(|(_, bounds)| *bounds)
}

pub(crate) fn install(telemetry: Option<&Telemetry>) -> Result<PrometheusHandle, Failure> {
    let failed = |error| Failure::because("cannot set up metrics", error);
    let builder = MEASURED.iter().try_fold(PrometheusBuilder::new(), |builder, (name, bounds)| {
        builder.set_buckets_for_metric(Matcher::Full((*name).to_owned()), bounds)
    });
    let builder = builder.map_err(failed)?;
    let builder = builder.idle_timeout(MetricKindMask::GAUGE, Some(FORGET_AFTER));
    match telemetry {
        Some(telemetry) => telemetry.beside(builder.build_recorder()),
        None => builder.install_recorder().map_err(failed),
    }
}

/// Keeps memory bounded for as long as it runs.
pub(crate) async fn keep_up(metrics: PrometheusHandle) {
    let clock = SystemClock::new();
    loop {
        clock.sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}
