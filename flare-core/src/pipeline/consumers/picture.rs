//! Takes what the stores know; gives which consumers fail and how far each is behind, and all of them together. Computed
//! once for all who look at about the same time, and the seldomer the more it costs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::Mutex;

use super::states::read_states;
use crate::error::Result;
use crate::model::{ConsumerId, ConsumerState, ConsumerStatus};
use crate::pipeline::context::Context;

/// How old what is shown may be.
const FRESH: Duration = Duration::from_secs(1);
/// Looking costs what there is to read: at most this part of the time is spent on it.
const SHARE: u32 = 20;

/// All consumers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConsumerTotals {
    /// How many there are whose settings can be read.
    pub consumers: u64,
    /// How many of them are to pull nothing.
    pub paused: u64,
    /// How many are to pull, and met an error that stands yet.
    pub failing: u64,
}

/// How one of all consumers is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "for metrics"))]
pub(super) struct ConsumerSummary {
    pub(super) id: ConsumerId,
    pub(super) status: ConsumerStatus,
    /// Whether an error stands, and it is to pull.
    pub(super) failing: bool,
    /// Messages that wait at the broker, if it says so.
    pub(super) depth: u64,
    /// How old the oldest of them is, if the broker says so.
    pub(super) behind: Duration,
}

/// How all consumers were doing at a time.
#[derive(Debug)]
pub(crate) struct ConsumersPicture {
    /// In no order.
    #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "for metrics"))]
    pub(super) summaries: Vec<ConsumerSummary>,
    pub(crate) totals: ConsumerTotals,
    /// When it was begun, by the monotonic clock, and how long that took.
    begun: Duration,
    took: Duration,
}

/// The last picture, for all who look.
#[derive(Debug, Default)]
pub(crate) struct PictureCache(Mutex<Option<Arc<ConsumersPicture>>>);

impl Context {
    /// How all consumers are doing, at most about a second old.
    pub(crate) async fn consumers_picture(&self) -> Result<Arc<ConsumersPicture>> {
        // A call that comes while it is computed waits for that, and has it.
        let mut last = self.consumers_seen.0.lock().await;
        let begun = self.clock.monotonic();
        let fresh = |picture: &&Arc<ConsumersPicture>| {
            begun.saturating_sub(picture.begun) < FRESH.max(picture.took * SHARE)
        };
        if let Some(picture) = last.as_ref().filter(fresh) {
            return Ok(Arc::clone(picture));
        }
        let summaries = summarize(self).await?;
        let totals = ConsumerTotals::of(&summaries);
        let took = self.clock.monotonic().saturating_sub(begun);
        let picture = Arc::new(ConsumersPicture { summaries, totals, begun, took });
        *last = Some(Arc::clone(&picture));
        Ok(picture)
    }
}

/// All of them, but for those whose settings cannot be read.
async fn summarize(context: &Context) -> Result<Vec<ConsumerSummary>> {
    let mut found = Vec::new();
    let mut scan = context.repository.scan_consumers(None);
    while let Some(read) = scan.next().await {
        match read {
            Ok(consumer) => found.push((consumer.id, consumer.status)),
            Err(error) => match error.unreadable() {
                Some(unreadable) => context.note_unreadable(unreadable),
                None => return Err(error),
            },
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<ConsumerId> = found.iter().map(|(id, _)| *id).collect();
    let mut states = read_states(context, &ids).await?;
    let summary =
        |(id, status)| ConsumerSummary::of(id, status, &states.remove(&id).unwrap_or_default());
    Ok(found.into_iter().map(summary).collect())
}

impl ConsumerSummary {
    pub(super) fn of(id: ConsumerId, status: ConsumerStatus, state: &ConsumerState) -> Self {
        Self {
            id,
            status,
            failing: status == ConsumerStatus::Active && state.last_error.is_some(),
            depth: state.depth.unwrap_or_default(),
            behind: Duration::from_millis(state.behind_millis.unwrap_or_default()),
        }
    }
}

impl ConsumerTotals {
    fn of(summaries: &[ConsumerSummary]) -> Self {
        let count = |fits: fn(&ConsumerSummary) -> bool| {
            summaries.iter().filter(|it| fits(it)).count() as u64
        };
        Self {
            consumers: summaries.len() as u64,
            paused: count(|it| it.status == ConsumerStatus::Paused),
            failing: count(|it| it.failing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_paused_does_not_fail_whatever_its_last_error_was() {
        let id = ConsumerId::from_bytes([1; 16]);
        let away = || ConsumerState { last_error: Some("away".into()), ..Default::default() };
        let (active, paused) = (ConsumerStatus::Active, ConsumerStatus::Paused);
        let all = [(active, away()), (paused, away()), (active, ConsumerState::default())];
        let all = all.map(|(status, state)| ConsumerSummary::of(id, status, &state));
        let totals = ConsumerTotals { consumers: 3, paused: 1, failing: 1 };
        assert_eq!(ConsumerTotals::of(&all), totals);
    }
}
