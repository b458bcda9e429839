//! Takes slots, the epoch drawn for them and for how long they can be trusted to be ours; gives
//! whoever works them what every send and every stored effect has to respect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::slots::Slots;
use crate::model::{Tenure, Timestamp};
use crate::port::{Clock, EpochGrant};

/// The time during which slots are this runtime's. Several may be under way, each with its own
/// epoch; a slot is worked under one of them.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    /// Which slots.
    pub(crate) slots: Slots,
    /// Since when, under which epoch.
    pub(crate) tenure: Tenure,
    /// How far the store's clock is ahead of ours, in nanoseconds.
    ahead: i64,
    trust: Arc<Trust>,
}

impl Term {
    /// Slots under an epoch that was asked for at `before`, by our clock.
    pub(crate) fn new(
        slots: Slots,
        drawn: EpochGrant,
        before: Timestamp,
        trust: Arc<Trust>,
    ) -> Self {
        let tenure = Tenure { epoch: drawn.epoch, taken_at: drawn.at };
        let ahead = drawn.at.unix_nanos().saturating_sub(before.unix_nanos());
        Self { slots, tenure, ahead, trust }
    }

    /// Store time, as well as it can be told from here.
    pub(crate) fn store_time(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix_nanos(now.unix_nanos().saturating_add(self.ahead))
    }

    /// Our time for a store time.
    pub(crate) fn local_time(&self, store: Timestamp) -> Timestamp {
        Timestamp::from_unix_nanos(store.unix_nanos().saturating_sub(self.ahead))
    }

    /// Whether the slots are certainly still ours: only then may a send start.
    pub(crate) fn is_trusted(&self, clock: &dyn Clock) -> bool {
        self.trust.left(clock) > Duration::ZERO
    }
}

/// Until when slots are certainly ours, by the monotonic clock. Whoever keeps them moves it on, and
/// terms share it.
#[derive(Debug)]
pub(crate) struct Trust(AtomicU64);

impl Trust {
    /// Trusted until `end` of the monotonic clock.
    pub(crate) fn until(end: Duration) -> Self {
        Self(AtomicU64::new(nanos(end)))
    }

    /// Trusted until another time.
    pub(crate) fn prolong(&self, end: Duration) {
        self.0.store(nanos(end), Ordering::Release);
    }

    /// How long they still are.
    pub(crate) fn left(&self, clock: &dyn Clock) -> Duration {
        let end = Duration::from_nanos(self.0.load(Ordering::Acquire));
        end.saturating_sub(clock.monotonic())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
