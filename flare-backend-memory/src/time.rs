//! Takes the injected clock; gives store time, which never runs backwards, and a time for spans, which
//! nobody can set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use flare_core::model::Timestamp;
use flare_core::port::Clock;

#[derive(Debug, Clone)]
pub(crate) struct StoreTime {
    clock: Arc<dyn Clock>,
    latest: Arc<AtomicI64>,
}

impl StoreTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, latest: Arc::new(AtomicI64::new(i64::MIN)) }
    }

    /// The clock's time, or the latest it ever gave if it was set back.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.clock.now().unix_nanos();
        let latest = self.latest.fetch_max(now, Ordering::Relaxed);
        Timestamp::from_unix_nanos(now.max(latest))
    }

    /// Waits for store time to reach `deadline`.
    pub(crate) async fn sleep_until(&self, deadline: Timestamp) {
        if self.now() < deadline {
            self.clock.sleep_until(deadline).await;
        }
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
