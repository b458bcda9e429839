//! Takes what a node's puts were answered; gives how many a second there were lately.

use std::sync::Mutex;

use crate::error::Result;
use crate::model::{RateWindow, Timestamp, WindowRates};
use crate::port::WriteOutcome;
use crate::tools::lock;

/// The puts and deletes a node takes, a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct PutRates {
    /// Those that were answered, whatever they changed.
    pub accepted: WindowRates,
    /// Those of them that a client is told of.
    pub changed: WindowRates,
}

/// The puts of one node.
#[derive(Debug, Default)]
pub(crate) struct PutCounts(Mutex<PutWindows>);

#[derive(Debug, Default)]
struct PutWindows {
    accepted: RateWindow,
    changed: RateWindow,
}

impl PutCounts {
    /// Puts or deletes were answered: of a batch all at once.
    pub(crate) fn note<'a>(
        &self,
        outcomes: impl Iterator<Item = &'a Result<WriteOutcome>>,
        now: Timestamp,
    ) {
        let (mut accepted, mut changed) = (0, 0);
        for outcome in outcomes.flatten() {
            accepted += 1;
            changed += u64::from(outcome.change.notifies());
        }
        let mut windows = lock(&self.0);
        windows.accepted.add(now, accepted);
        windows.changed.add(now, changed);
    }

    pub(crate) fn rates(&self, now: Timestamp) -> PutRates {
        let windows = lock(&self.0);
        PutRates { accepted: windows.accepted.rates(now), changed: windows.changed.rates(now) }
    }
}
