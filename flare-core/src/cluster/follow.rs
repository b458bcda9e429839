//! Takes plans as they are read; gives what this node has to stop and to start by them, in that
//! order. Pure: the runner carries it out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::held::StillHeld;
use super::plan::{SlotPlan, SlotState};
use crate::model::{Epoch, NodeId, Takeover, Timestamp};
use crate::ownership::{SlotChange, Slots};

/// What a node works, and the plan it works by.
#[derive(Debug)]
pub(crate) struct Follower {
    me: NodeId,
    plan: Option<Arc<SlotPlan>>,
    works: BTreeMap<u32, WorkedSlot>,
    /// Whether it takes nothing more.
    closed: bool,
}

#[derive(Debug, Clone, Copy)]
struct WorkedSlot {
    epoch: Epoch,
    /// By when it has to be given up, if it has to.
    until: Option<Duration>,
}

/// A change that a plan asks for: what it says of a grant is when the slots were taken over.
pub(crate) type PlannedChange = SlotChange<Takeover, ()>;

impl Follower {
    pub(crate) fn new(me: NodeId) -> Self {
        Self { me, plan: None, works: BTreeMap::new(), closed: false }
    }

    /// Follows a plan. `fresh` is when this node last knew, for certain, that there was no newer
    /// plan than the one it followed: whatever this one wants back, it wants since later than that.
    pub(crate) fn apply(&mut self, plan: &Arc<SlotPlan>, fresh: Duration) -> Vec<PlannedChange> {
        if self.has_followed(plan.generation) {
            return Vec::new();
        }
        self.plan = Some(Arc::clone(plan));
        let until = fresh + plan.grace * 3 / 4;
        let (mut dropped, mut released) = (Vec::new(), Vec::new());
        let mut granted: BTreeMap<(Epoch, Timestamp), Vec<u32>> = BTreeMap::new();
        for (slot, state) in plan.numbered() {
            let work = self.works.get_mut(&slot);
            match *state {
                SlotState::Owned { node, takeover } if node == self.me => {
                    if work.as_ref().is_some_and(|work| work.epoch == takeover.epoch) {
                        continue;
                    }
                    dropped.extend(work.map(|_| slot));
                    if self.closed {
                        self.works.remove(&slot);
                        continue;
                    }
                    self.works.insert(slot, WorkedSlot { epoch: takeover.epoch, until: None });
                    granted.entry((takeover.epoch, takeover.at)).or_default().push(slot);
                }
                SlotState::Releasing { node, takeover, .. } if node == self.me => match work {
                    Some(work) if work.epoch != takeover.epoch => {
                        self.works.remove(&slot);
                        dropped.push(slot);
                    }
                    Some(work) if work.until.is_none() => {
                        work.until = Some(until);
                        released.push(slot);
                    }
                    _ => {}
                },
                _ => dropped.extend(self.works.remove(&slot).map(|_| slot)),
            }
        }
        let granted = granted.into_iter().map(|((epoch, at), slots)| SlotChange::Granted {
            slots: slots.into_iter().collect(),
            term: Takeover { epoch, at },
        });
        lost(dropped).into_iter().chain(releasing(released, until)).chain(granted).collect()
    }

    /// Whether it has followed this plan, or a later one.
    pub(crate) fn has_followed(&self, generation: u64) -> bool {
        self.plan.as_ref().is_some_and(|last| last.generation >= generation)
    }

    /// Gives everything up, by then at the latest, and takes nothing more.
    pub(crate) fn close(&mut self, until: Duration) -> Option<PlannedChange> {
        self.closed = true;
        let mut slots = Vec::new();
        for (slot, work) in &mut self.works {
            if work.until.is_none_or(|before| before > until) {
                work.until = Some(until);
                slots.push(*slot);
            }
        }
        releasing(slots, until)
    }

    /// Under which epochs these are worked.
    pub(crate) fn epochs(&self, slots: &Slots) -> Vec<(u32, Epoch)> {
        slots.iter().filter_map(|slot| Some((slot, self.works.get(&slot)?.epoch))).collect()
    }

    /// These are not worked under these epochs any more; tells those of them that were to be given
    /// up. A slot may have been taken and granted anew since it was asked back.
    pub(crate) fn done(&mut self, slots: &[(u32, Epoch)]) -> Vec<u32> {
        let mut given_up = Vec::new();
        for (slot, epoch) in slots {
            let work = self.works.get(slot);
            if work.is_some_and(|work| work.epoch == *epoch && work.until.is_some()) {
                self.works.remove(slot);
                given_up.push(*slot);
            }
        }
        given_up
    }

    /// What should have been given up by now.
    pub(crate) fn overdue(&mut self, now: Duration) -> Option<PlannedChange> {
        let late = |work: &WorkedSlot| work.until.is_some_and(|until| until <= now);
        let late = self.works.iter().filter(|(_, work)| late(work));
        let slots: Vec<u32> = late.map(|(slot, _)| *slot).collect();
        slots.iter().for_each(|slot| _ = self.works.remove(slot));
        lost(slots)
    }

    /// When something is overdue next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.works.values().filter_map(|work| work.until).min()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.works.is_empty()
    }

    /// What the leader should know, if it does not follow from what it was told last.
    pub(crate) fn confirmation(&self, told: &StillHeld) -> Option<StillHeld> {
        let plan = self.plan.as_ref()?;
        let slots: BTreeSet<u32> = self
            .works
            .iter()
            .filter(|(_, work)| work.until.is_some())
            .map(|(slot, _)| *slot)
            .collect();
        let held = StillHeld { generation: plan.generation, slots };
        let changed = plan.numbered().any(|(slot, state)| match state {
            SlotState::Releasing { node, since, .. } if *node == self.me => {
                held.confirms(slot, *since) && !told.confirms(slot, *since)
            }
            _ => false,
        });
        changed.then_some(held)
    }
}

fn lost(slots: Vec<u32>) -> Option<PlannedChange> {
    (!slots.is_empty()).then(|| SlotChange::Lost { slots: slots.into_iter().collect() })
}

fn releasing(slots: Vec<u32>, until: Duration) -> Option<PlannedChange> {
    let slots: Slots = slots.into_iter().collect();
    (!slots.is_empty()).then_some(SlotChange::Releasing { slots, until, done: () })
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
