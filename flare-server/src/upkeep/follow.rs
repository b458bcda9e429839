//! Takes what happens while a plan is applied; gives a line for every step that ended, and now and
//! then one about a step that takes long.

use std::sync::atomic::{AtomicU64, Ordering};

use flare_core::port::Step;
use flare_core::upkeep::{Observer, PartPlan, StepResult};

use super::show::{change, clean};
use super::talk::Talk;

/// A line each time another twentieth is done: 5 %.
const MARKS: u128 = 20;

/// Tells people how far it is. Steps that ended are part of the command's answer, unless that is
/// JSON; how far a step is, is not.
pub(super) struct Follower<'a> {
    talk: &'a dyn Talk,
    tells_ends: bool,
    /// The last mark of the step under way that was told.
    mark: AtomicU64,
}

impl<'a> Follower<'a> {
    pub(super) fn new(talk: &'a dyn Talk, tells_ends: bool) -> Self {
        Self { talk, tells_ends, mark: AtomicU64::new(0) }
    }
}

impl Observer for Follower<'_> {
    fn started(&self, _part: &PartPlan, _step: &Step) {
        self.mark.store(0, Ordering::Relaxed);
    }

    fn advanced(&self, step: &Step, done: u64, total: Option<u64>) {
        let mark = mark(done, total);
        if mark <= self.mark.fetch_max(mark, Ordering::Relaxed) {
            return;
        }
        let far = match total.filter(|total| *total > 0) {
            Some(total) => format!("{} % ({done} of {total})", share(done, total, 100)),
            None => format!("{done} done"),
        };
        self.talk.note(&clean(&format!("    {}: {far}", step.subject)));
    }

    fn ended(&self, step: &Step, result: &StepResult) {
        let end = match result {
            StepResult::Done => "done",
            StepResult::Failed { .. } => "failed",
            _ => "no longer needed",
        };
        if self.tells_ends {
            self.talk.say(&format!("{}\n", clean(&format!("{}  {end}", change(step)))));
        }
    }
}

/// Grows now and then, so that a step of any length is told in a bounded number of lines: with a
/// total at every twentieth of it, else whenever the count has doubled.
fn mark(done: u64, total: Option<u64>) -> u64 {
    match total {
        Some(total) => share(done, total, MARKS),
        None => u64::from(u64::BITS - done.leading_zeros()),
    }
}

/// `done` of `total` in parts of `whole`; nothing of nothing is nothing.
fn share(done: u64, total: u64, whole: u128) -> u64 {
    let share = (u128::from(done) * whole).checked_div(u128::from(total)).unwrap_or(0);
    u64::try_from(share.min(whole)).unwrap_or(0)
}
