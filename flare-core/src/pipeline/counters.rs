//! Takes note of lanes whose counters are not stored yet; gives readers of them a way to wait
//! until they are, and to have that happen soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// The counters of this runtime's lanes, as far as they are not stored.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    unsaved: AtomicUsize,
    asked: watch::Sender<()>,
}

impl Counters {
    /// Whether the counters of all lanes are stored.
    pub(crate) fn are_saved(&self) -> bool {
        self.unsaved.load(Ordering::Acquire) == 0
    }

    /// Has lanes store their counters now, instead of with others a little later.
    pub(crate) fn ask(&self) {
        self.asked.send_replace(());
    }

    /// Tells when a reader asks for them.
    pub(crate) fn asked(&self) -> watch::Receiver<()> {
        self.asked.subscribe()
    }

    /// A lane has counted something.
    pub(crate) fn unsaved(self: &Arc<Self>) -> Unsaved {
        self.unsaved.fetch_add(1, Ordering::AcqRel);
        Unsaved(Arc::clone(self))
    }
}

/// What one lane has counted and not stored; dropped when it is stored, or will never be.
#[derive(Debug)]
pub(crate) struct Unsaved(Arc<Counters>);

impl Drop for Unsaved {
    fn drop(&mut self) {
        self.0.unsaved.fetch_sub(1, Ordering::AcqRel);
    }
}
