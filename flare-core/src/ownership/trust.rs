//! Takes leases as they are granted and prolonged; gives until when a slot is certainly this
//! node's, by the monotonic clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::port::{Clock, LeaseGrant};

/// Until when slots are certainly this node's. Clones share it: a lane of the slot asks before
/// it starts anything, and is right even where news of a loss has not reached it yet.
///
/// A slot is trusted while both hold:
/// - the node's lease cannot have lapsed, and the newest plan was read: three quarters of the
///   lease's time, counted from before both were asked for;
/// - the slot was granted and not taken back; one that is to be given up is trusted until the time
///   by which it has to be.
///
/// Once it has ended it stays ended: the node registers anew, with another trust.
#[derive(Debug, Clone)]
pub struct Trust(Arc<Ends>);

/// When trust ends, in nanoseconds of the monotonic clock.
#[derive(Debug)]
struct Ends {
    node: AtomicU64,
    slots: Vec<AtomicU64>,
}

impl Trust {
    /// A lease that was asked for at `asked`, and no slots yet.
    pub(crate) fn new(grant: &LeaseGrant, asked: Duration, slots: u32) -> Self {
        let slots = (0..slots).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Ends { node: AtomicU64::new(end_of(grant, asked)), slots }))
    }

    /// No lease, and these slots for ever: for a runtime that follows a test's script.
    pub(crate) fn unlimited(slots: u32) -> Self {
        let slots = (0..slots).map(|_| AtomicU64::new(u64::MAX)).collect();
        Self(Arc::new(Ends { node: AtomicU64::new(u64::MAX), slots }))
    }

    /// How long the slot is certainly this node's.
    pub fn left(&self, slot: u32, clock: &dyn Clock) -> Duration {
        let slots = &self.0.slots;
        let end = slots.get(slot as usize).map_or(0, |end| end.load(Ordering::Acquire));
        self.node_left(clock).min(span(end, clock))
    }

    /// Whether the slot is certainly this node's: only then may a send start.
    pub fn is_trusted(&self, slot: u32, clock: &dyn Clock) -> bool {
        !self.left(slot, clock).is_zero()
    }

    /// How long the node itself is certainly registered, and knows the newest plan. Once a lane has
    /// seen that it is not, it never is again.
    pub fn node_left(&self, clock: &dyn Clock) -> Duration {
        let end = self.0.node.load(Ordering::Acquire);
        let left = span(end, clock);
        if left.is_zero() && end != 0 {
            // A caller that was faster has either seen the same or prolonged it in time.
            let _ = self.0.node.compare_exchange(end, 0, Ordering::AcqRel, Ordering::Acquire);
        }
        left
    }

    /// The lease was prolonged and the plan read, both asked for after `asked`. Tells whether it
    /// was in time: what was not trusted for a moment is not trusted again.
    pub(crate) fn prolong(&self, grant: &LeaseGrant, asked: Duration, clock: &dyn Clock) -> bool {
        let later = |old: u64| (old != 0).then_some(end_of(grant, asked));
        !self.node_left(clock).is_zero()
            && self.0.node.fetch_update(Ordering::AcqRel, Ordering::Acquire, later).is_ok()
    }

    /// Nothing is trusted any more.
    pub(crate) fn end(&self) {
        self.0.node.store(0, Ordering::Release);
    }

    /// The slot is this node's.
    pub(crate) fn open(&self, slot: u32) {
        self.set(slot, u64::MAX);
    }

    /// The slot has to be given up by then.
    pub(crate) fn limit(&self, slot: u32, until: Duration) {
        self.set(slot, nanos(until));
    }

    /// The slot is not this node's any more.
    pub(crate) fn close(&self, slot: u32) {
        self.set(slot, 0);
    }

    fn set(&self, slot: u32, end: u64) {
        if let Some(slot) = self.0.slots.get(slot as usize) {
            slot.store(end, Ordering::Release);
        }
    }
}

fn end_of(grant: &LeaseGrant, asked: Duration) -> u64 {
    nanos(asked + grant.ttl * 3 / 4)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn span(end: u64, clock: &dyn Clock) -> Duration {
    Duration::from_nanos(end).saturating_sub(clock.monotonic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::LeaseId;
    use crate::port::clock::At;

    fn trust() -> (Trust, LeaseGrant) {
        let grant = LeaseGrant::new(LeaseId::new(1), Duration::from_secs(20));
        (Trust::new(&grant, Duration::from_secs(100), 2), grant)
    }

    #[test]
    fn a_slot_is_trusted_once_open_and_for_three_quarters_of_the_lease() {
        let (trust, _) = trust();
        assert!(!trust.is_trusted(1, &At::second(100)));
        trust.open(1);
        assert!(trust.is_trusted(1, &At::second(114)) && !trust.is_trusted(1, &At::second(115)));
        trust.open(1);
        assert!(!trust.is_trusted(1, &At::second(114)), "once it was seen to have ended it has");
    }

    #[test]
    fn a_slot_is_trusted_while_it_is_the_node_s() {
        let (trust, _) = trust();
        trust.open(1);
        assert!(!trust.is_trusted(0, &At::second(101)) && !trust.is_trusted(9, &At::second(101)));
        trust.limit(1, Duration::from_secs(105));
        assert!(trust.is_trusted(1, &At::second(104)) && !trust.is_trusted(1, &At::second(105)));
        trust.close(1);
        assert!(!trust.is_trusted(1, &At::second(101)));
    }

    #[test]
    fn what_ended_is_not_prolonged() {
        let (trust, grant) = trust();
        trust.open(0);
        assert!(trust.prolong(&grant, Duration::from_secs(110), &At::second(112)));
        assert!(trust.is_trusted(0, &At::second(124)));
        assert!(!trust.prolong(&grant, Duration::from_secs(124), &At::second(125)), "too late");
        trust.end();
        assert!(!trust.prolong(&grant, Duration::from_secs(112), &At::second(113)));
        assert!(!trust.is_trusted(0, &At::second(113)));
    }
}
