//! Takes a Flare and what it delivers a second at most; gives how long deliveries take at a fifth of that, and
//! beside it how long the store takes for the least that it has to do.

use std::time::Duration;

use flare_benches::measure::quantile;
use serde_json::{Value, json};

use super::options::Options;
use super::pace::Pace;
use super::receiver::Receiver;
use super::with_flare::Running;
use crate::Result;

/// The part of what Flare can do at most.
const LOAD: f64 = 0.2;
/// How long to put, within these bounds.
const SECONDS: f64 = 3.0;
const LEAST_PUTS: usize = 30;
/// Bare writes to compare with, and the longest time between two.
const WRITES: usize = 400;
const WRITE_EVERY: Duration = Duration::from_millis(10);

/// How long things take while there is little to do. In milliseconds, shortest first.
#[derive(Debug, Clone, Default)]
pub(super) struct AtLoad {
    /// Puts a second.
    pub(super) puts: f64,
    /// From the begin of a put until a client was told.
    pub(super) latencies: Vec<f64>,
    /// A bare write of one record, at the same pace; none if nothing in the store is safe.
    pub(super) bare: Vec<f64>,
}

impl AtLoad {
    /// Measures; half of the bare writes come before, half after.
    pub(super) async fn measure(
        options: &Options,
        most: f64,
        flare: &mut Running,
        receiver: &mut Receiver,
    ) -> Result<Self> {
        let puts = (most * LOAD / options.subscriptions as f64).max(1.0);
        let every = Duration::from_secs_f64(1.0 / puts);
        let changes = ((puts * SECONDS) as usize).max(LEAST_PUTS).min(options.documents);
        let mut bare = bare_writes(flare, every).await?;
        let latencies = flare.paced(changes, every, receiver).await?;
        bare.extend(bare_writes(flare, every).await?);
        bare.sort_unstable_by(f64::total_cmp);
        Ok(Self { puts, latencies, bare })
    }

    /// How many bare writes a delivery takes, at the median and at the 99th percentile.
    pub(super) fn by_bare(&self) -> Option<(f64, f64)> {
        let by = |share| quantile(&self.latencies, share) / quantile(&self.bare, share);
        (!self.bare.is_empty()).then(|| (by(0.5), by(0.99)))
    }

    pub(super) fn to_json(&self) -> Value {
        let quantiles =
            |times: &[f64]| json!({ "p50": quantile(times, 0.5), "p99": quantile(times, 0.99) });
        let by_bare = self.by_bare();
        json!({
            "puts_per_second": self.puts,
            "latency_ms": quantiles(&self.latencies),
            "bare_write_ms": by_bare.map(|_| quantiles(&self.bare)),
            "by_bare": by_bare.map(|(p50, p99)| json!({ "p50": p50, "p99": p99 })),
        })
    }
}

async fn bare_writes(flare: &Running, every: Duration) -> Result<Vec<f64>> {
    let (mut times, mut pace) = (Vec::new(), Pace::new(every.min(WRITE_EVERY)));
    for _ in 0..WRITES / 2 {
        pace.next().await?;
        match flare.store().bare_write().await? {
            Some(time) => times.push(time.as_secs_f64() * 1e3),
            None => break,
        }
    }
    Ok(times)
}
