//! How long a node has to finish what is in flight when it ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a node may take to end. A caller that has less time makes it shorter, never longer.
#[derive(Debug)]
pub struct DrainLimit(AtomicU64);

impl DrainLimit {
    /// At most so long.
    pub fn new(limit: Duration) -> Self {
        Self(AtomicU64::new(nanos(limit)))
    }

    /// How long that is now.
    pub fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn shorten(&self, limit: Duration) {
        self.0.fetch_min(nanos(limit), Ordering::AcqRel);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
