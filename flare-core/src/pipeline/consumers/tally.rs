//! What a consumer's owner counts: since its creation, and a second over the last minute and the last five. Takes
//! what happened and when; gives the state that is stored. No clock, no store.

use crate::model::consumer::{ConsumerRates, RejectReason};
use crate::model::{Checkpoint, ConsumerState, NodeId, RateWindow, SourceSettings, Timestamp};
use crate::port::SourceLag;

/// So much of an error is kept.
const ERROR_BYTES: usize = 1_024;

/// What one owner knows of a consumer.
#[derive(Debug)]
pub(super) struct ConsumerTally {
    state: ConsumerState,
    received: RateWindow,
    accepted: RateWindow,
    rejected: RateWindow,
    /// What the last error was about.
    trouble: Trouble,
    /// Whether there is anything that was not stored yet.
    dirty: bool,
}

/// What does not go well: the end of one trouble says nothing of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The broker cannot be read.
    Source,
    /// What messages say cannot be stored.
    Store,
}

impl ConsumerTally {
    /// Goes on from what the last owner stored; at the beginning of a source that is not the one it was stored of.
    pub(super) fn new(mut state: ConsumerState, node: NodeId, source: &SourceSettings) -> Self {
        let place = Some(source.fingerprint());
        // Owners of before did not say.
        if state.source.is_some() && state.source != place {
            state.checkpoints.clear();
        }
        (state.node, state.source) = (Some(node), place);
        state.rates = ConsumerRates::default();
        let [received, accepted, rejected] = [RateWindow::default(); 3];
        Self { state, received, accepted, rejected, trouble: Trouble::Source, dirty: true }
    }

    pub(super) fn checkpoints(&self) -> Vec<Checkpoint> {
        self.state.checkpoints.clone()
    }

    /// Messages came: the broker is well.
    pub(super) fn receive(&mut self, messages: usize, now: Timestamp) {
        self.is_well(Trouble::Source);
        if messages > 0 {
            self.dirty = true;
            self.state.received += messages as u64;
            self.received.add(now, messages as u64);
            self.state.last_message_at = Some(now.unix_nanos());
        }
    }

    /// Documents were stored, or were so already.
    pub(super) fn store(&mut self, accepted: u64, unchanged: u64, now: Timestamp) {
        if accepted + unchanged > 0 {
            self.is_well(Trouble::Store);
        }
        self.dirty = true;
        self.state.accepted += accepted;
        self.state.unchanged += unchanged;
        self.accepted.add(now, accepted);
    }

    pub(super) fn reject(&mut self, reason: RejectReason, now: Timestamp) {
        self.dirty = true;
        self.state.rejected += 1;
        *self.state.reasons.entry(reason.as_str().to_owned()).or_insert(0) += 1;
        self.rejected.add(now, 1);
    }

    /// Forgets an error about that.
    fn is_well(&mut self, about: Trouble) {
        if self.trouble == about && self.state.last_error.is_some() {
            self.dirty = true;
            (self.state.last_error, self.state.last_error_at) = (None, None);
        }
    }

    /// Whether this is news: it went well before, or failed otherwise.
    pub(super) fn fail(&mut self, about: Trouble, error: &str, now: Timestamp) -> bool {
        let end = (0..=ERROR_BYTES.min(error.len())).rev().find(|at| error.is_char_boundary(*at));
        let error = &error[..end.unwrap_or(0)];
        let news = self.state.last_error.as_deref() != Some(error);
        self.dirty = true;
        self.trouble = about;
        self.state.last_error = Some(error.to_owned());
        self.state.last_error_at = Some(now.unix_nanos());
        news
    }

    pub(super) fn lag(&mut self, lag: Option<SourceLag>) {
        let (depth, behind) = match lag {
            None => (None, None),
            Some(SourceLag::Messages(depth)) => (Some(depth), None),
            Some(SourceLag::Behind(time)) => {
                (None, Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
            }
        };
        self.dirty |= (self.state.depth, self.state.behind_millis) != (depth, behind);
        (self.state.depth, self.state.behind_millis) = (depth, behind);
    }

    /// Up to where all is done now.
    pub(super) fn reach(&mut self, checkpoints: Vec<Checkpoint>) {
        if !checkpoints.is_empty() && self.state.checkpoints != checkpoints {
            self.dirty = true;
            self.state.checkpoints = checkpoints;
        }
    }

    pub(super) fn is_dirty(&self) -> bool {
        // Rates fall by themselves.
        self.dirty || self.state.rates != ConsumerRates::default()
    }

    /// What is to be stored now.
    pub(super) fn state(&mut self, now: Timestamp) -> ConsumerState {
        self.state.rates.received = self.received.rates(now);
        self.state.rates.accepted = self.accepted.rates(now);
        self.state.rates.rejected = self.rejected.rates(now);
        self.state.stored_at = now.unix_nanos();
        self.dirty = false;
        self.state.clone()
    }

    /// It could not be stored.
    pub(super) fn was_not_stored(&mut self) {
        self.dirty = true;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_unix_seconds(second)
    }

    fn tally(state: ConsumerState) -> ConsumerTally {
        ConsumerTally::new(state, NodeId::from_bytes([1; 16]), &stream("log"))
    }

    fn stream(name: &str) -> SourceSettings {
        SourceSettings::new("memory", json!({"stream": name, "from": "latest"})).unwrap()
    }

    #[test]
    fn goes_on_counting_where_the_last_owner_ended() {
        let mut former = ConsumerState::default();
        (former.received, former.rejected) = (7, 1);
        let mut tally = tally(former);
        tally.receive(3, at(5));
        tally.reject(RejectReason::NotJson, at(5));
        tally.store(2, 1, at(5));
        tally.lag(Some(SourceLag::Behind(Duration::from_millis(1_500))));
        let state = tally.state(at(6));
        assert_eq!(
            (state.received, state.rejected, state.accepted, state.unchanged),
            (10, 2, 2, 1)
        );
        assert_eq!(state.reasons["not-json"], 1);
        assert_eq!((state.depth, state.behind_millis), (None, Some(1_500)));
        assert!(state.rates.received.minute > 0.0 && tally.is_dirty(), "its rates fall yet");
    }

    #[test]
    fn a_place_is_one_of_the_source_it_was_stored_of() {
        let mut first = tally(ConsumerState::default());
        first.reach(vec![Checkpoint::new("0", "7")]);
        first.receive(3, at(5));
        let stored = first.state(at(6));
        let same = tally(stored.clone());
        assert_eq!(same.checkpoints(), [Checkpoint::new("0", "7")]);
        let mut other =
            ConsumerTally::new(stored.clone(), NodeId::from_bytes([1; 16]), &stream("b"));
        assert!(other.checkpoints().is_empty(), "another stream begins at its own beginning");
        assert_eq!(other.state(at(7)).received, 3, "what was counted stays");
        let mut before = stored;
        before.source = None;
        assert_eq!(tally(before).checkpoints().len(), 1, "as owners of before stored it");
    }

    #[test]
    fn an_error_stands_until_what_it_is_about_goes_well_again() {
        let mut tally = tally(ConsumerState::default());
        let mut fails = |error: &str, second| tally.fail(Trouble::Source, error, at(second));
        assert!(fails("away", 1) && !fails("away", 2) && fails("gone", 3));
        assert_eq!(tally.state(at(3)).last_error.as_deref(), Some("gone"));
        tally.store(1, 0, at(4));
        assert!(tally.state(at(4)).last_error.is_some(), "storing says nothing of the broker");
        tally.receive(0, at(4));
        assert_eq!(tally.state(at(4)).last_error, None);
        assert!(tally.fail(Trouble::Store, "busy", at(5)));
        tally.receive(7, at(6));
        tally.store(0, 0, at(6));
        assert_eq!(tally.state(at(6)).last_error.as_deref(), Some("busy"));
        tally.store(0, 1, at(7));
        assert_eq!(tally.state(at(7)).last_error, None);
        assert!(tally.fail(Trouble::Source, &"ä".repeat(ERROR_BYTES), at(8)));
        assert_eq!(tally.state(at(8)).last_error.map(|it| it.len()), Some(ERROR_BYTES));
    }
}
