//! Takes slots, the epoch drawn for them and for how long they can be trusted to be ours; gives
//! whoever works them what every send and every stored effect has to respect.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::slots::Slots;
use crate::model::{Epoch, Tenure};
use crate::port::{Clock, EpochGrant};

/// The time during which slots are this runtime's. Several may be under way, each with its own
/// epoch; a slot is worked under one of them.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    /// Which slots.
    pub(crate) slots: Slots,
    /// Since when, and what nobody but us can have written since.
    pub(crate) tenure: Tenure,
    /// What effects are stored under. Later than the tenure's if lanes began anew meanwhile.
    pub(crate) epoch: Epoch,
    trust: Arc<dyn Trusted>,
}

/// Tells for how long slots are certainly ours. Whoever keeps them knows how.
pub(crate) trait Trusted: fmt::Debug + Send + Sync {
    /// How long this slot still is.
    fn left(&self, slot: u32, clock: &dyn Clock) -> Duration;
}

impl Term {
    /// Slots under an epoch that somebody drew for them.
    pub(crate) fn new(slots: Slots, tenure: Tenure, trust: Arc<dyn Trusted>) -> Self {
        Self { slots, tenure, epoch: tenure.epoch, trust }
    }

    /// Slots under an epoch that was drawn for all of them.
    pub(crate) fn drawn(slots: Slots, drawn: EpochGrant, trust: Arc<Trust>) -> Self {
        let tenure = Tenure { epoch: drawn.epoch, taken_at: drawn.at };
        Self::new(slots, tenure, trust)
    }

    /// The same for one of its slots, under a later epoch.
    pub(crate) fn under(&self, slot: u32, tenure: Tenure, epoch: Epoch) -> Self {
        let trust = Arc::clone(&self.trust);
        Self { slots: [slot].into_iter().collect(), tenure, epoch, trust }
    }

    /// Who knows how long its slots are certainly ours.
    pub(crate) fn trust(&self) -> Arc<dyn Trusted> {
        Arc::clone(&self.trust)
    }

    /// Whether a slot is certainly still ours: only then may a send start.
    pub(crate) fn is_trusted(&self, slot: u32, clock: &dyn Clock) -> bool {
        self.trust.left(slot, clock) > Duration::ZERO
    }
}

/// Until when slots that one lease covers are certainly ours, by the monotonic clock. Whoever keeps
/// them moves it on, and terms share it.
#[derive(Debug)]
pub(crate) struct Trust(AtomicU64);

impl Trust {
    /// Trusted until `end` of the monotonic clock.
    pub(crate) fn until(end: Duration) -> Self {
        Self(AtomicU64::new(nanos(end)))
    }

    /// Trusted until another time, unless that has ended: what was not trusted for a moment is not
    /// trusted again, as what was about to be sent then never is.
    pub(crate) fn prolong(&self, end: Duration, clock: &dyn Clock) {
        if !self.left(clock).is_zero() {
            let later = |old: u64| (old != 0).then_some(nanos(end));
            // It has ended meanwhile, and somebody has seen it.
            let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
        }
    }

    /// How long they still are. Once somebody has seen that they are not, they never are again.
    pub(crate) fn left(&self, clock: &dyn Clock) -> Duration {
        let end = self.0.load(Ordering::Acquire);
        let left = Duration::from_nanos(end).saturating_sub(clock.monotonic());
        if left.is_zero() && end != 0 {
            // Whoever was faster has either seen the same or prolonged it in time.
            let _ = self.0.compare_exchange(end, 0, Ordering::AcqRel, Ordering::Acquire);
        }
        left
    }
}

impl Trusted for Trust {
    fn left(&self, _: u32, clock: &dyn Clock) -> Duration {
        self.left(clock)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
