//! What keeps a lane from sending at once: the wait its client asked for, the client's rate, and the permits
//! that all lanes of a process share.

use std::time::Duration;

use crate::model::Timestamp;
use crate::model::subscription::DeliveryOptions;
use crate::pipeline::lane::pace::Pace;

/// When the client may be asked.
#[derive(Debug)]
pub(super) struct ClientLimits {
    /// Until when the client wants to be left alone.
    held_until: Timestamp,
    /// The client's rate, if it has one.
    pace: Option<Pace>,
    /// When the next request may go, if the rate does not allow it now.
    paced_until: Option<Timestamp>,
}

impl ClientLimits {
    pub(super) fn new(options: &DeliveryOptions) -> Self {
        let held_until = Timestamp::from_unix_nanos(i64::MIN);
        let mut limits = Self { held_until, pace: None, paced_until: None };
        limits.follow(options);
        limits
    }

    /// Goes by the rate of these settings; the same rate goes on as it was.
    pub(super) fn follow(&mut self, options: &DeliveryOptions) {
        let lanes = options.lanes();
        let same = |rate| self.pace.as_ref().is_some_and(|pace| pace.is_of(rate, lanes));
        match options.rate() {
            Some(rate) if same(rate) => {}
            rate => self.pace = rate.map(|rate| Pace::new(rate, lanes)),
        }
    }

    /// Leaves the client alone until then, or longer if it did so before.
    pub(super) fn hold(&mut self, until: Timestamp) {
        self.held_until = self.held_until.max(until);
    }

    pub(super) fn held_until(&self) -> Timestamp {
        self.held_until
    }

    /// When the rate allows the next request, if not now.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.pace.as_ref().map(|pace| pace.next(now)).filter(|next| *next > now)
    }

    /// How many requests the rate allows within a time, if there is one.
    pub(super) fn within(&self, time: Duration) -> Option<usize> {
        self.pace.as_ref().map(|pace| pace.within(time))
    }

    /// Notes when what is ready may go by the rate.
    pub(super) fn wait_until(&mut self, at: Option<Timestamp>) {
        self.paced_until = at;
    }

    /// When that is.
    pub(super) fn waits_until(&self) -> Option<Timestamp> {
        self.paced_until
    }

    /// Notes a request.
    pub(super) fn sent(&mut self, now: Timestamp) {
        if let Some(pace) = &mut self.pace {
            pace.take(now);
        }
    }
}

/// Permits of the next requests.
#[derive(Debug, Default)]
pub(super) struct HeldPermits {
    free: usize,
    /// Whether some were asked for.
    asked: bool,
}

impl HeldPermits {
    /// Those asked for are there; none ever, if there is no number.
    pub(super) fn given(&mut self, count: Option<usize>) {
        *self = Self { free: count.unwrap_or_default(), asked: false };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free == 0
    }

    /// Whether a request could not be made for want of one that was asked for.
    pub(super) fn are_awaited(&self) -> bool {
        self.is_empty() && self.asked
    }

    /// Asks for some, unless that was done; tells whether it has to be.
    pub(super) fn ask(&mut self) -> bool {
        !std::mem::replace(&mut self.asked, true)
    }

    /// Asks for none any more.
    pub(super) fn stop_asking(&mut self) {
        self.asked = false;
    }

    /// Uses one up.
    pub(super) fn take(&mut self) {
        self.free = self.free.saturating_sub(1);
    }

    /// Gives all back; tells whether there were any.
    pub(super) fn give_back(&mut self) -> bool {
        std::mem::take(&mut self.free) > 0
    }
}
