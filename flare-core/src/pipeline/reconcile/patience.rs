//! Takes when a change was stored, when was looked before and what waits at the stages; gives
//! whether its task counts as lost. Plain functions: no store, no clock.
//!
//! A change whose task cannot be waiting anywhere is announced once it is as old as the reconciler
//! looks often, then at twice that age, four times and so on: what cannot be spread for any other
//! reason is asked for ever more rarely. A change whose task may be waiting, or being worked on, is
//! given eight times as long first, so that a queue that is never empty hides nothing for ever.
//! All of it follows from the age of the change, so nothing has to be remembered about any of them.

use std::time::Duration;

use crate::model::Timestamp;
use crate::port::{QueueDepth, Undispatched};

/// How much longer a change is given whose task may still be waiting.
const BUSY_TIMES: u32 = 8;
/// After so many doublings a change is announced in equal intervals.
const DOUBLINGS: u32 = 7;

/// What is in the queues of both stages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waiting {
    pub(super) partition: QueueDepth,
    pub(super) spread: QueueDepth,
}

impl Waiting {
    /// Whether no task is anywhere.
    pub(super) fn is_nothing(&self) -> bool {
        total(&self.partition) == 0 && total(&self.spread) == 0
    }

    /// Whether a task to find the partitions of a change may be somewhere.
    fn may_partition(&self) -> bool {
        total(&self.partition) > 0
    }

    /// Whether a task to spread a change may be somewhere. The partition stage opens a change before
    /// it sends these, so one that it works on may be about to.
    fn may_spread(&self) -> bool {
        total(&self.spread) > 0 || self.partition.in_flight > 0
    }
}

fn total(depth: &QueueDepth) -> u64 {
    depth.ready.saturating_add(depth.delayed).saturating_add(depth.in_flight)
}

/// When all that is undispatched was looked at last, by store time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Looks {
    /// Whatever waited then.
    last: Option<Timestamp>,
    /// While no task to find partitions was anywhere.
    unpartitioned: Option<Timestamp>,
    /// While no task to spread was anywhere.
    unspread: Option<Timestamp>,
}

impl Looks {
    /// Those of a node that begins now. What is given longer, because it may be waiting, the node
    /// before has seen to.
    pub(super) fn since(now: Timestamp) -> Self {
        Self { last: Some(now), ..Self::default() }
    }

    /// What was stored later than this needs no look.
    pub(super) fn until(&self, now: Timestamp, every: Duration) -> Timestamp {
        match (self.unpartitioned, self.unspread) {
            (Some(_), Some(_)) => now - every,
            _ => Timestamp::MAX,
        }
    }

    /// Whether any change could count as lost: where tasks wait at both stages it is soon enough to
    /// look through all of them now and then.
    pub(super) fn is_worth_it(&self, waiting: &Waiting, now: Timestamp, every: Duration) -> bool {
        let rarely = every.saturating_mul(BUSY_TIMES);
        !(waiting.may_partition() && waiting.may_spread())
            || self.last.is_none_or(|last| now - last >= rarely)
    }

    /// Whether the task of a change counts as lost.
    pub(super) fn finds_lost(
        &self,
        change: &Undispatched,
        waiting: &Waiting,
        now: Timestamp,
        every: Duration,
    ) -> bool {
        let (may_wait, quiet) = match change.open {
            None => (waiting.may_partition(), self.unpartitioned),
            Some(_) => (waiting.may_spread(), self.unspread),
        };
        let stored = change.updated_at;
        match (may_wait, quiet) {
            (true, _) => {
                let first = every.saturating_mul(BUSY_TIMES);
                is_time(stored, self.last.unwrap_or(stored), now, first)
            }
            (false, Some(before)) => is_time(stored, before, now, every),
            // No task is anywhere, and no reconciler looked before: it is lost, however young it is.
            (false, None) => true,
        }
    }

    /// All was looked at.
    pub(super) fn looked(&mut self, waiting: &Waiting, now: Timestamp) {
        self.last = Some(now);
        if !waiting.may_partition() {
            self.unpartitioned = Some(now);
        }
        if !waiting.may_spread() {
            self.unspread = Some(now);
        }
    }
}

/// Whether a change is to be announced now that was looked at `before`.
fn is_time(stored: Timestamp, before: Timestamp, now: Timestamp, first: Duration) -> bool {
    announcements(now - stored, first) > announcements(before - stored, first)
}

/// How often a change of this age has been announced: at the age of `first`, then at every doubling,
/// in the end in equal intervals.
fn announcements(age: Duration, first: Duration) -> u128 {
    match age.as_nanos() / first.as_nanos().max(1) {
        0 => 0,
        times if times >> DOUBLINGS == 0 => u128::from(times.ilog2()) + 1,
        times => u128::from(DOUBLINGS) + (times >> DOUBLINGS),
    }
}

#[cfg(test)]
mod tests;
