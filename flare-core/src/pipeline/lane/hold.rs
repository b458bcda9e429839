//! Takes the waits a client asks for; gives all lanes of its subscription the longest of them.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::model::Timestamp;

/// Until when nothing is sent to a subscription's client, because it asked for that. Store time;
/// shared by the subscription's lanes.
#[derive(Debug)]
pub(crate) struct Hold(AtomicI64);

impl Default for Hold {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl Hold {
    /// Holds until then, or later if it did so before.
    pub(super) fn until(&self, time: Timestamp) {
        self.0.fetch_max(time.unix_nanos(), Ordering::AcqRel);
    }

    /// When the last hold ends or ended; long ago if there was none.
    pub(super) fn end(&self) -> Timestamp {
        Timestamp::from_unix_nanos(self.0.load(Ordering::Acquire))
    }
}
