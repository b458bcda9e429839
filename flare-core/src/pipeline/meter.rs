//! Takes what happens in the pipeline; counts it through the `metrics` facade. Without the feature
//! of that name it costs nothing.

#[cfg(feature = "metrics")]
pub(crate) use counting::{
    accepted, attempted, filtered, named_unknown, received, rejected, requested, sample,
};
#[cfg(not(feature = "metrics"))]
pub(crate) use silent::{
    accepted, attempted, filtered, named_unknown, received, rejected, requested,
};

#[cfg(feature = "metrics")]
mod counting {
    use std::sync::Arc;
    use std::time::Duration;

    use metrics::{counter, gauge, histogram};
    use tracing::warn;

    use crate::error::{ErrorKind, Result};
    use crate::model::consumer::RejectReason;
    use crate::model::{AttemptPhases, RecordKind, RowEffect, Verdict};
    use crate::observe;
    use crate::pipeline::consumers::WorstConsumers;
    use crate::pipeline::context::Context;
    use crate::pipeline::judge::Judgement;
    use crate::pipeline::stage::chain;
    use crate::pipeline::stop::Stop;
    use crate::pipeline::worst::WorstSubscriptions;
    use crate::port::{QueueName, WriteOutcome};

    /// Counting costs what the lag is: at most this part of the time is spent on it.
    const SHARE: u32 = 50;

    /// A put or delete was answered.
    pub(crate) fn accepted(outcome: &Result<WriteOutcome>) {
        if let Ok(outcome) = outcome {
            counter!(observe::ACCEPTED).increment(1);
            if outcome.change.notifies() {
                counter!(observe::CHANGED).increment(1);
            }
        }
    }

    /// An attempt ended, so long after its version was stored.
    pub(crate) fn attempted(judgement: &Judgement, latency: Duration) {
        match judgement.verdict {
            Verdict::Success => {
                counter!(observe::DELIVERED).increment(1);
                histogram!(observe::LATENCY).record(latency.as_secs_f64());
            }
            Verdict::Discard => counter!(observe::DISCARDED).increment(1),
            Verdict::Failure | Verdict::Unknown => {
                counter!(observe::FAILED).increment(1);
                let next = match judgement.effect {
                    RowEffect::GiveUp { .. } => observe::DEAD,
                    _ => observe::RETRIED,
                };
                counter!(next).increment(1);
            }
        }
    }

    /// A request ended after so long.
    pub(crate) fn requested(took: Duration, phases: &AttemptPhases) {
        histogram!(observe::ATTEMPT_TIME).record(took.as_secs_f64());
        let parts = [
            ("dns", phases.dns),
            ("connect", phases.connect),
            ("tls", phases.tls),
            ("first-byte", phases.first_byte),
        ];
        for (phase, took) in parts {
            if let Some(took) = took {
                histogram!(observe::ATTEMPT_PHASE, "phase" => phase).record(took.as_secs_f64());
            }
        }
    }

    /// A client named so many notifications that it was not told of.
    pub(crate) fn named_unknown(count: usize) {
        counter!(observe::UNKNOWN_IDS).increment(count as u64);
    }

    /// Filters were asked about documents, and some of them failed.
    pub(crate) fn filtered(evaluated: u64, failed: u64) {
        if evaluated > 0 {
            counter!(observe::FILTERED).increment(evaluated);
        }
        if failed > 0 {
            counter!(observe::FILTER_FAILED).increment(failed);
        }
    }

    /// Consumers were given messages.
    pub(crate) fn received(messages: usize) {
        counter!(observe::RECEIVED).increment(messages as u64);
    }

    /// A message, or a part of it, became no document.
    pub(crate) fn rejected(reason: RejectReason) {
        counter!(observe::REJECTED, "reason" => reason.as_str()).increment(1);
    }

    /// What is counted shows from the start: a counter that appears with its first event hides that event from
    /// who compares two readings.
    fn begin() {
        for counted in [
            observe::ACCEPTED,
            observe::CHANGED,
            observe::DELIVERED,
            observe::DISCARDED,
            observe::FAILED,
            observe::RETRIED,
            observe::DEAD,
            observe::UNKNOWN_IDS,
            observe::FILTERED,
            observe::FILTER_FAILED,
            observe::AUDIT_LOST,
            observe::RECEIVED,
        ] {
            counter!(counted).increment(0);
        }
        for reason in RejectReason::ALL {
            counter!(observe::REJECTED, "reason" => reason.as_str()).increment(0);
        }
    }

    /// Looks now and then at what is pending, queued and stuck.
    pub(crate) async fn sample(context: Arc<Context>, mut stop: Stop) {
        begin();
        let most = context.settings.metered_subscriptions;
        let mut worst = WorstSubscriptions::new(most);
        let mut worst_consumers = WorstConsumers::new(most);
        loop {
            let started = context.clock.monotonic();
            progress(&context);
            if let Err(error) = stores(&context).await {
                warn!(error = %chain(&error), "could not count what is pending");
            }
            if let Err(error) = worst.show(&context).await {
                warn!(error = %chain(&error), "could not count what is pending for whom");
            }
            if let Err(error) = worst_consumers.show(&context).await {
                warn!(error = %chain(&error), "could not count how consumers are doing");
            }
            let took = context.clock.monotonic().saturating_sub(started);
            let pause = context.settings.sample_every.max(took * SHARE);
            tokio::select! {
                biased;
                () = stop.requested() => return,
                () = context.sleep(pause) => {}
            }
        }
    }

    fn progress(context: &Context) {
        let now = context.now();
        gauge!(observe::LANES).set(context.progress.lanes() as f64);
        let puts = context.puts.rates(now).accepted;
        for (window, rate) in [("1m", puts.minute), ("5m", puts.five_minutes)] {
            gauge!(observe::PUT_RATE, "window" => window).set(rate);
        }
        let unreadable = context.unreadable_records();
        for kind in RecordKind::ALL {
            let records = unreadable.iter().filter(|it| it.record.kind() == kind).count();
            gauge!(observe::UNREADABLE, "kind" => kind.as_str()).set(records as f64);
        }
        for it in context.loops() {
            let busy = it.working_since.map_or(Duration::ZERO, |since| now - since);
            let idle = now - it.last_progress_at;
            gauge!(observe::LOOP_IDLE, "loop" => it.name).set(idle.as_secs_f64());
            gauge!(observe::LOOP_BUSY, "loop" => it.name).set(busy.as_secs_f64());
        }
    }

    async fn stores(context: &Context) -> Result<()> {
        let spreading = context.repository.count_undispatched(None).await?;
        gauge!(observe::SPREADING).set(spreading as f64);
        let lag = context.repository.count_pending(None).await?.count;
        gauge!(observe::LAG).set(lag as f64);
        for queue in [QueueName::Partition, QueueName::Spread] {
            let depth = match context.queue.depth(&queue).await {
                Ok(depth) => depth.ready,
                Err(error) if error.kind() == ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
            gauge!(observe::QUEUE_DEPTH, "queue" => queue.to_string()).set(depth as f64);
        }
        Ok(())
    }
}

#[cfg(not(feature = "metrics"))]
mod silent {
    use std::time::Duration;

    use crate::error::Result;
    use crate::model::AttemptPhases;
    use crate::model::consumer::RejectReason;
    use crate::pipeline::judge::Judgement;
    use crate::port::WriteOutcome;

    pub(crate) fn accepted(_: &Result<WriteOutcome>) {}

    pub(crate) fn attempted(_: &Judgement, _: Duration) {}

    pub(crate) fn requested(_: Duration, _: &AttemptPhases) {}

    pub(crate) fn named_unknown(_: usize) {}
    pub(crate) fn filtered(_: u64, _: u64) {}

    pub(crate) fn received(_: usize) {}

    pub(crate) fn rejected(_: RejectReason) {}
}
