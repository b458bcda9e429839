//! Takes one round of either side; gives what it took, as seen by the sink and by the kernel.

use std::time::Duration;

use flare_benches::measure::{cpu_time, quantile};

use super::receiver::{Received, Receiver};
use crate::Result;

/// What a round took.
#[derive(Debug, Clone, Default)]
pub(super) struct Round {
    /// Deliveries that arrived, by the time until the last one did.
    pub(super) per_second: f64,
    /// CPU of the sending process per delivery, in microseconds.
    pub(super) cpu: f64,
    /// CPU of the sink per delivery, in microseconds.
    pub(super) sink_cpu: f64,
    /// Time per put until the last one was answered, in microseconds. Without Flare there is none.
    pub(super) put: f64,
    pub(super) lost: usize,
    pub(super) duplicates: usize,
    /// From put to arrival, in milliseconds, shortest first. Without Flare there is no put.
    pub(super) latencies: Vec<f64>,
}

impl Round {
    pub(super) fn latency(&self, share: f64) -> f64 {
        quantile(&self.latencies, share)
    }
}

/// The beginning of a round.
pub(super) struct Start {
    at: u64,
    cpu: Duration,
    sink_cpu: Duration,
}

impl Start {
    pub(super) fn now(receiver: &Receiver) -> Result<Self> {
        let (cpu, sink_cpu) = (own_cpu()?, receiver.cpu()?);
        Ok(Self { at: super::now_nanos(), cpu, sink_cpu })
    }

    /// Time that has passed.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(super::now_nanos().saturating_sub(self.at))
    }

    /// The round, once all its work is done.
    pub(super) async fn end(self, receiver: &mut Receiver) -> Result<(Round, Received)> {
        let (cpu, sink_cpu) = (own_cpu()? - self.cpu, receiver.cpu()? - self.sink_cpu);
        let received = receiver.received().await?;
        let lost = received.lost();
        let arrived = (received.arrivals.len() - lost) as f64;
        let took = received.end().saturating_sub(self.at) as f64 / 1e9;
        let round = Round {
            per_second: arrived / took,
            cpu: cpu.as_secs_f64() * 1e6 / arrived,
            sink_cpu: sink_cpu.as_secs_f64() * 1e6 / arrived,
            put: f64::NAN,
            lost,
            duplicates: received.duplicates,
            latencies: Vec::new(),
        };
        Ok((round, received))
    }
}

fn own_cpu() -> Result<Duration> {
    Ok(cpu_time(std::process::id())?)
}
