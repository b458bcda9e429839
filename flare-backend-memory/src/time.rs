//! Takes the injected clock; gives store time, which never runs backwards, and a time for spans, which
//! nobody can set.

use std::sync::Arc;
use std::time::Duration;

use flare_core::model::Timestamp;
use flare_core::port::Clock;

/// What the clock showed when the store was made, and counted on from there: a store in memory is as old
/// as its process, whatever becomes of the wall clock.
#[derive(Debug, Clone)]
pub(crate) struct StoreTime {
    clock: Arc<dyn Clock>,
    began: (Timestamp, Duration),
}

impl StoreTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let began = (clock.now(), clock.monotonic());
        Self { clock, began }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let (wall, monotonic) = self.began;
        wall + self.clock.monotonic().saturating_sub(monotonic)
    }

    /// Waits for store time to reach `deadline`.
    pub(crate) async fn sleep_until(&self, deadline: Timestamp) {
        self.clock.sleep(deadline - self.now()).await;
    }

    /// Time since some fixed start.
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Waits for `monotonic` to reach `deadline`.
    pub(crate) async fn sleep_to(&self, deadline: Duration) {
        self.clock.sleep(deadline.saturating_sub(self.monotonic())).await;
    }
}
