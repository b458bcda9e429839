//! What is remembered of a lane's client, and when that is stored: at once where a successor has to know,
//! else now and then.

use std::time::Duration;

use super::LaneNotice;
use crate::model::{AttemptPhases, LaneState, Timestamp};
use crate::pipeline::health::{ClientHealth, Sign};

/// How long counters may lag behind.
const EVERY: Duration = Duration::from_secs(1);

/// The state of a lane, and how much of it is stored.
#[derive(Debug)]
pub(super) struct LaneRecord {
    health: ClientHealth,
    /// It was said that the client is down, and not yet that it is back.
    down: bool,
    /// Something is not stored yet.
    changed: bool,
    /// And is not to wait for its turn.
    urgent: bool,
    /// When it is stored next.
    turn: Timestamp,
    storing: bool,
}

impl LaneRecord {
    pub(super) fn new(health: ClientHealth) -> Self {
        let (down, turn) = (health.is_probing(), Timestamp::EPOCH);
        Self { health, down, changed: false, urgent: false, turn, storing: false }
    }

    pub(super) fn health(&self) -> &ClientHealth {
        &self.health
    }

    /// Notes an answer; gives what the log should have of it.
    pub(super) fn note(
        &mut self,
        sign: Sign,
        probe: bool,
        error: Option<&str>,
        now: Timestamp,
    ) -> Option<LaneNotice> {
        let before = self.health.is_probing();
        self.health.note(sign, probe, error, now);
        self.changed = true;
        // A successor goes on probing, or has no need to begin.
        self.urgent |= before != self.health.is_probing();
        if self.health.is_probing() && !self.down {
            self.down = true;
            let failures = self.health.state().consecutive_failures;
            return Some(LaneNotice::Down {
                failures,
                error: error.unwrap_or_default().to_owned(),
            });
        }
        if self.down && matches!(sign, Sign::Accepted | Sign::Refused) {
            self.down = false;
            return Some(LaneNotice::Back);
        }
        None
    }

    /// Notes how long after its version was stored a notification was accepted.
    pub(super) fn told(&mut self, latency: Duration, now: Timestamp) {
        self.health.told(latency, now);
    }

    /// Notes how long a request took.
    pub(super) fn attempted(&mut self, took: Duration, phases: &AttemptPhases, now: Timestamp) {
        self.health.attempted(took, phases, now);
    }

    /// Notes that something is to be stored, such as that a request was begun.
    pub(super) fn touch(&mut self) {
        self.changed = true;
    }

    /// Has what is not stored yet stored at once.
    pub(super) fn hurry(&mut self) {
        self.urgent |= self.changed;
    }

    /// Whether something is not stored, nor being stored.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Notes that the client wants to be left alone.
    pub(super) fn hold(&mut self, until: Timestamp) {
        self.health.hold(until);
        (self.changed, self.urgent) = (true, true);
    }

    /// Notes that the lane's queue was made again.
    pub(super) fn queue_restored(&mut self, at: Timestamp) {
        self.health.queue_restored(at);
        self.changed = true;
    }

    /// Notes that an operator says it is mended, whatever was noted since.
    pub(super) fn resumed(&mut self) {
        self.health.forgive();
        self.changed = true;
    }

    /// When the state wants to be stored; `None` if not, or if it is being stored.
    pub(super) fn store_at(&self) -> Option<Timestamp> {
        let at = if self.urgent { Timestamp::EPOCH } else { self.turn };
        (self.changed && !self.storing).then_some(at)
    }

    /// The state to be stored, if it is its turn or there will be no other.
    pub(super) fn begin(
        &mut self,
        now: Timestamp,
        in_flight: usize,
        node: &str,
        last: bool,
    ) -> Option<LaneState> {
        self.store_at().filter(|at| *at <= now || last)?;
        (self.changed, self.urgent, self.storing) = (false, false, true);
        self.turn = now + EVERY;
        Some(self.health.stored_at(now, in_flight, node))
    }

    /// Whether everything is stored.
    pub(super) fn is_settled(&self) -> bool {
        !self.changed && !self.storing
    }

    /// It was stored, or never will be.
    pub(super) fn stored(&mut self) {
        self.storing = false;
    }

    /// It was not. A lane that ends does not wait for counters; its successor counts on without them.
    pub(super) fn failed(&mut self, last: bool) {
        self.storing = false;
        self.changed = !last;
    }
}
