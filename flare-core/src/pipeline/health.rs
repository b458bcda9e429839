//! How a lane's client is, by what it answered: well, to be probed, or failing for how long. Pure: no await, no clock. Times are store times.

use std::time::Duration;

use crate::model::{AttemptPhases, LaneActivity, LaneState, Timestamp};

/// After this many failures in a row a client is only probed.
const PROBE_AFTER: u32 = 5;
/// The first wait between two probes; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How a client is, as its answers tell, and what is counted of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientHealth(LaneState);

/// What kind of answer it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The client took or refused the version: it is well.
    Accepted,
    Refused,
    /// The connection, the time or the client's machine failed.
    Down,
    /// It answered something that is neither.
    Unhappy,
}

impl ClientHealth {
    /// Goes on from what was stored. What was wrong before the last resumption counts no more: an
    /// operator says that it is mended.
    pub(crate) fn stored(state: LaneState, resumed_at: Option<Timestamp>) -> Self {
        let forgiven = resumed_at.is_some_and(|resumed| state.updated_at <= resumed);
        let mut health = Self(state);
        if forgiven {
            health.forgive();
        }
        health
    }

    /// Forgets what was wrong.
    pub(crate) fn forgive(&mut self) {
        let state = &mut self.0;
        (state.failures_in_a_row, state.consecutive_failures) = (0, 0);
        state.failing_since = None;
    }

    /// What is to be stored.
    pub(crate) fn state(&self) -> &LaneState {
        &self.0
    }

    /// Notes an answer. `probe`: whether it is the answer to a probe, or came from before probing.
    pub(crate) fn note(&mut self, sign: Sign, probe: bool, error: Option<&str>, now: Timestamp) {
        let state = &mut self.0;
        match sign {
            Sign::Accepted | Sign::Refused => {
                if state.failures_in_a_row >= PROBE_AFTER {
                    state.released_at = Some(now);
                }
                state.failures_in_a_row = 0;
                state.consecutive_failures = 0;
                state.failing_since = None;
                let activity = state.activity.get_or_insert_default();
                if sign == Sign::Accepted {
                    state.delivered += 1;
                    activity.delivered.add(now, 1);
                    state.last_success_at = Some(now);
                } else {
                    state.discarded += 1;
                    activity.discarded.add(now, 1);
                }
                return;
            }
            // What was under way when probing began says nothing new.
            Sign::Down if state.failures_in_a_row < PROBE_AFTER || probe => {
                state.failures_in_a_row = state.failures_in_a_row.saturating_add(1);
            }
            Sign::Unhappy if state.failures_in_a_row < PROBE_AFTER => state.failures_in_a_row = 0,
            Sign::Down | Sign::Unhappy => {}
        }
        state.failed += 1;
        state.activity.get_or_insert_default().failed.add(now, 1);
        state.consecutive_failures = state.consecutive_failures.saturating_add(1);
        state.failing_since.get_or_insert(now);
        state.last_error_at = Some(now);
        state.last_error = error.map(str::to_owned);
    }

    /// Notes how long after its version was stored a notification was accepted.
    pub(crate) fn told(&mut self, latency: Duration, now: Timestamp) {
        self.activity().told(now, latency);
    }

    /// Notes how long a request took.
    pub(crate) fn attempted(&mut self, took: Duration, phases: &AttemptPhases, now: Timestamp) {
        self.activity().attempted(now, took, phases);
    }

    fn activity(&mut self) -> &mut LaneActivity {
        self.0.activity.get_or_insert_default()
    }

    /// Whether only one request at a time is made, now and then.
    pub(crate) fn is_probing(&self) -> bool {
        self.0.failures_in_a_row >= PROBE_AFTER
    }

    /// When the next probe may be made; `None` if the client is not probed.
    pub(crate) fn probe_at(&self) -> Option<Timestamp> {
        let probes = self.0.failures_in_a_row.checked_sub(PROBE_AFTER)?;
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(probes)).min(LONGEST_WAIT);
        Some(self.0.last_error_at.unwrap_or(Timestamp::EPOCH) + wait)
    }

    /// Attempts that failed in a row; what was stored before all kinds were counted knows of some only.
    pub(crate) fn failures(&self) -> u32 {
        self.0.consecutive_failures.max(self.0.failures_in_a_row)
    }

    /// Since when it has only been failing.
    pub(crate) fn failing_since(&self) -> Option<Timestamp> {
        self.0.failing_since
    }

    /// When the last spell of probing ended.
    pub(crate) fn released_at(&self) -> Option<Timestamp> {
        self.0.released_at
    }

    /// Notes that nothing is sent before `until`.
    pub(crate) fn hold(&mut self, until: Timestamp) {
        self.0.hold_until = self.0.hold_until.max(Some(until));
    }

    /// Notes that the lane's queue was made again.
    pub(crate) fn queue_restored(&mut self, at: Timestamp) {
        self.0.queue_restored_at = self.0.queue_restored_at.max(Some(at));
    }

    /// The state as it is stored now.
    pub(crate) fn stored_at(&mut self, now: Timestamp, in_flight: usize, node: &str) -> LaneState {
        self.0.updated_at = now;
        self.0.node = Some(node.to_owned());
        self.0.in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{LaneId, SubscriptionId};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn healthy() -> ClientHealth {
        let lane = LaneId::new(SubscriptionId::from_bytes([1; 16]), 0);
        ClientHealth::stored(LaneState::new(lane), None)
    }

    fn down(failures: u32) -> ClientHealth {
        let mut health = healthy();
        for n in 0..failures {
            health.note(Sign::Down, true, Some("reset"), at(i64::from(n)));
        }
        health
    }

    #[test]
    fn five_failures_in_a_row_begin_probing_and_one_success_ends_it() {
        let mut health = down(4);
        assert_eq!((health.is_probing(), health.probe_at()), (false, None));
        health.note(Sign::Down, false, Some("reset"), at(10));
        assert_eq!((health.is_probing(), health.probe_at()), (true, Some(at(11))));
        health.note(Sign::Accepted, true, None, at(20));
        assert!(!health.is_probing());
        assert_eq!((health.released_at(), health.failing_since()), (Some(at(20)), None));
        assert_eq!((health.state().delivered, health.state().failed), (1, 5));
    }

    #[test]
    fn probes_wait_one_second_doubling_to_sixty() {
        let mut health = down(5);
        let mut waits = Vec::new();
        for n in 0..9 {
            health.note(Sign::Down, true, Some("reset"), at(1_000 * n));
            waits.push(health.probe_at().unwrap() - at(1_000 * n));
        }
        assert_eq!(
            waits.iter().map(Duration::as_secs).collect::<Vec<_>>(),
            [2, 4, 8, 16, 32, 60, 60, 60, 60]
        );
    }

    #[test]
    fn what_was_under_way_when_probing_began_does_not_slow_it_down() {
        let mut health = down(5);
        for _ in 0..27 {
            health.note(Sign::Down, false, Some("reset"), at(4));
        }
        assert_eq!(health.probe_at(), Some(at(5)));
    }

    #[test]
    fn an_answer_of_another_kind_breaks_the_row_but_ends_no_probing() {
        let mut health = down(4);
        health.note(Sign::Unhappy, false, Some("answered 404"), at(5));
        health.note(Sign::Down, false, Some("reset"), at(6));
        assert!(!health.is_probing());
        assert_eq!(health.failing_since(), Some(at(0)), "it still only fails");
        let mut health = down(6);
        health.note(Sign::Unhappy, true, Some("answered 404"), at(9));
        assert_eq!((health.is_probing(), health.probe_at()), (true, Some(at(11))));
        health.note(Sign::Refused, true, None, at(12));
        assert!(!health.is_probing(), "a refusal is an answer to the question");
    }

    #[test]
    fn a_resumption_forgives_what_was_before_it() {
        let mut health = down(7);
        let stored = health.stored_at(at(50), 3, "node");
        assert_eq!((stored.in_flight, stored.node.as_deref()), (3, Some("node")));
        assert!(ClientHealth::stored(stored.clone(), Some(at(49))).is_probing());
        let resumed = ClientHealth::stored(stored, Some(at(50)));
        assert!(!resumed.is_probing());
        assert_eq!((resumed.failing_since(), resumed.state().failed), (None, 7));
    }

    #[test]
    fn a_hold_only_ever_gets_later() {
        let mut health = healthy();
        health.hold(at(10));
        health.hold(at(5));
        assert_eq!(health.state().hold_until, Some(at(10)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn probing_is_left_by_success_only_and_waits_stay_bounded(
            signs in prop::collection::vec((0..4u8, any::<bool>()), 0..60)
        ) {
            let mut health = healthy();
            for (step, (sign, probe)) in signs.into_iter().enumerate() {
                let sign = [Sign::Accepted, Sign::Refused, Sign::Down, Sign::Unhappy][usize::from(sign)];
                let (before, now) = (health.is_probing(), at(step as i64));
                health.note(sign, probe, None, now);
                let well = matches!(sign, Sign::Accepted | Sign::Refused);
                prop_assert_eq!(health.failing_since().is_none(), well);
                prop_assert!(!before || health.is_probing() || well);
                if let Some(next) = health.probe_at() {
                    prop_assert!(next <= now + LONGEST_WAIT && next > now - LONGEST_WAIT);
                }
            }
        }
    }
}
