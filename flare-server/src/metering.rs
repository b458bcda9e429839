//! Takes what the core counts; gives it as Prometheus reads it. Installed once, by the binary.

use std::time::Duration;

use flare_core::observe;
use flare_core::port::{Clock, SystemClock};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::failure::Failure;

/// How often figures that nobody fetched are folded together, so that they do not pile up.
const UPKEEP: Duration = Duration::from_secs(5);

/// From what a notification takes in one machine to what a client that was down for a day causes.
const LATENCIES: [f64; 13] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0];

/// From a hand-over within one machine to one that was forced.
const HAND_OVERS: [f64; 9] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];

pub(crate) fn install() -> Result<PrometheusHandle, Failure> {
    let latency = Matcher::Full(observe::LATENCY.to_owned());
    let hand_over = Matcher::Full(observe::CLUSTER_HAND_OVER.to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(latency, &LATENCIES)
        .and_then(|builder| builder.set_buckets_for_metric(hand_over, &HAND_OVERS));
    let installed = builder.and_then(PrometheusBuilder::install_recorder);
    installed.map_err(|error| Failure::because("cannot set up metrics", error))
}

/// Keeps memory bounded for as long as it runs.
pub(crate) async fn keep_up(metrics: PrometheusHandle) {
    let clock = SystemClock::new();
    loop {
        clock.sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}
