//! What came of requests and is not stored yet, and when it is: together with what comes soon.

use std::time::Duration;

use super::Moment;
use crate::model::Timestamp;
use crate::pipeline::lane::settler::Unstored;
use crate::pipeline::stage::pause_after;

/// How far apart outcomes are stored while more are to come.
const GATHER: Duration = Duration::from_millis(10);

/// What came of requests and is not stored yet.
#[derive(Debug)]
pub(super) struct Storing {
    unstored: Vec<Unstored>,
    under_way: bool,
    /// No sooner is anything stored while there is more to come.
    gather_until: Timestamp,
    /// What could not be stored is tried again then.
    again_at: Option<Timestamp>,
    failures: u32,
}

impl Storing {
    pub(super) fn new() -> Self {
        let (unstored, gather_until) = (Vec::new(), Timestamp::EPOCH);
        Self { unstored, under_way: false, gather_until, again_at: None, failures: 0 }
    }

    /// Whether outcomes can be stored, as far as is known.
    pub(super) fn works(&self) -> bool {
        self.failures == 0
    }

    /// Whether everything is stored.
    pub(super) fn is_idle(&self) -> bool {
        !self.under_way && self.unstored.is_empty()
    }

    /// How many outcomes wait.
    pub(super) fn waiting(&self) -> usize {
        self.unstored.len()
    }

    /// When what failed is tried again.
    pub(super) fn again_at(&self) -> Option<Timestamp> {
        self.again_at
    }

    pub(super) fn push(&mut self, unstored: Unstored) {
        self.unstored.push(unstored);
    }

    /// When outcomes are to be stored, if there are any that can be. At once, as long as nothing
    /// was stored just now or nothing more is to come: else a store that is fast, or a client
    /// whose answers come one by one, would have us write each on its own.
    pub(super) fn at(&self, last: bool, room: usize) -> Option<Timestamp> {
        if self.under_way || self.unstored.is_empty() || self.again_at.is_some() {
            return None;
        }
        let many = self.unstored.len() * 2 >= room;
        Some(if last || many { Timestamp::EPOCH } else { self.gather_until })
    }

    /// Takes note of the time.
    pub(super) fn take_due(&mut self, now: Timestamp) {
        self.again_at.take_if(|at| *at <= now);
    }

    /// All that waits, to be stored.
    pub(super) fn begin(&mut self, now: Timestamp) -> Vec<Unstored> {
        (self.gather_until, self.under_way) = (now + GATHER, true);
        std::mem::take(&mut self.unstored)
    }

    /// It was stored.
    pub(super) fn ended(&mut self) {
        (self.under_way, self.failures) = (false, 0);
    }

    /// This was not.
    pub(super) fn failed(&mut self, left: Vec<Unstored>, moment: &Moment) {
        self.under_way = false;
        self.failures += 1;
        self.again_at = Some(moment.now + moment.jittered(pause_after(self.failures)));
        self.unstored.extend(left);
    }
}
