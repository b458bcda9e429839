//! That a subscription is to be suspended: stored before anything else is sent.

use super::Moment;
use crate::model::Timestamp;
use crate::pipeline::stage::pause_after;

/// Whether the subscription is to be suspended.
#[derive(Debug, Default)]
pub(super) struct Suspending {
    wanted: Option<Suspension>,
    failures: u32,
}

/// A suspension that has to be stored.
#[derive(Debug, Clone)]
pub(super) struct Suspension {
    pub(super) reason: String,
    /// Only if no other lane of the subscription got through since then.
    pub(super) failing_since: Option<Timestamp>,
    /// Not before this time.
    at: Timestamp,
    running: bool,
}

impl Suspending {
    /// Has the subscription suspended; what was said first stays the reason.
    pub(super) fn want(&mut self, reason: String, failing_since: Option<Timestamp>) {
        let (at, running) = (Timestamp::EPOCH, false);
        self.wanted.get_or_insert(Suspension { reason, failing_since, at, running });
    }

    /// Whether it is to be suspended before anything else is sent.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// When it is stored next.
    pub(super) fn at(&self) -> Option<Timestamp> {
        self.wanted.as_ref().filter(|it| !it.running).map(|it| it.at)
    }

    /// What is to be stored now.
    pub(super) fn begin(&mut self, now: Timestamp) -> Option<Suspension> {
        let due = self.wanted.as_mut().filter(|it| !it.running && it.at <= now)?;
        due.running = true;
        Some(due.clone())
    }

    /// It was stored, or is not needed any more.
    pub(super) fn ended(&mut self) {
        *self = Self::default();
    }

    /// It could not be stored.
    pub(super) fn failed(&mut self, moment: &Moment) {
        self.failures += 1;
        if let Some(suspension) = &mut self.wanted {
            suspension.running = false;
            suspension.at = moment.now + moment.jittered(pause_after(self.failures));
        }
    }
}
