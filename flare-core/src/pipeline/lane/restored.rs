//! Takes word that a queue was made again; gives it to the lane that is woken by it, to be noted.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::model::Timestamp;

/// There is nothing to note.
const NOTHING: i64 = i64::MIN;

/// When a lane's queue was made again, until the lane takes note of it.
#[derive(Debug)]
pub(crate) struct Restored(AtomicI64);

impl Default for Restored {
    fn default() -> Self {
        Self(AtomicI64::new(NOTHING))
    }
}

impl Restored {
    pub(crate) fn at(&self, time: Timestamp) {
        self.0.fetch_max(time.unix_nanos(), Ordering::AcqRel);
    }

    /// What is not noted yet.
    pub(super) fn take(&self) -> Option<Timestamp> {
        let nanos = self.0.swap(NOTHING, Ordering::AcqRel);
        (nanos != NOTHING).then(|| Timestamp::from_unix_nanos(nanos))
    }
}
