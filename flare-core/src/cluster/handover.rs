//! Takes the last plan and who is there; gives the next plan, if there is to be one. Pure: the
//! leader's loop brings the times, the epoch and the store.
//!
//! A slot goes Owned(e) → Releasing → Owned(new, larger e), and straight from one owner to the next
//! only if the old one is gone. Every reason to take a slot stays true once it is: a node whose
//! lease ended does not come back under that incarnation, a confirmation of one plan is good for
//! all later ones, a deadline that has passed has passed. So a leader that acts late, even one that
//! was replaced meanwhile, takes nothing from a node that works.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::assignment::{Worker, assign};
use super::plan::{SlotPlan, SlotState};
use super::state::State;
use crate::model::{NodeId, Takeover};

/// What the leader knows beyond the keys.
pub(crate) struct Knowledge<'a> {
    /// Nodes that have been there long enough to be given slots.
    pub(crate) settled: &'a BTreeSet<NodeId>,
    /// Whether a node has had its time to give up what the plan of a generation wanted back.
    pub(crate) overdue: &'a dyn Fn(NodeId, u64) -> bool,
    /// How many slots may move only to balance.
    pub(crate) moves: usize,
}

/// The next plan but for the epoch, which is drawn once it is known to be needed.
#[derive(Debug)]
pub(crate) struct Draft {
    generation: u64,
    slots: Vec<NextSlot>,
    /// Whether slots move only to balance.
    pub(crate) balances: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextSlot {
    As(SlotState),
    Taken(NodeId),
}

/// The next plan; none if the last one is still right.
pub(crate) fn draft(state: &State, plan: &SlotPlan, knowledge: &Knowledge<'_>) -> Option<Draft> {
    let generation = plan.generation + 1;
    let released: Vec<bool> =
        plan.numbered().map(|(slot, it)| is_released(state, slot, it, knowledge.overdue)).collect();
    let workers = workers(state, plan, knowledge.settled);
    let settled = |id: &NodeId| workers.iter().any(|it| it.id == *id && it.receives && !it.leaves);
    // Who will have each slot once what has begun is done.
    let owners: Vec<Option<NodeId>> = plan
        .slots
        .iter()
        .zip(&released)
        .map(|(slot, released)| match slot {
            SlotState::Free => None,
            SlotState::Owned { node, .. } => (!released).then_some(*node),
            SlotState::Releasing { to, .. } => Some(*to).filter(settled),
        })
        .collect();
    let losses = plan
        .slots
        .iter()
        .zip(&released)
        .any(|(slot, released)| *released && matches!(slot, SlotState::Owned { .. }));
    // One thing at a time; and whom we do not understand we do not balance.
    let busy = losses || plan.slots.iter().any(SlotState::is_moving);
    let unclear = state.nodes.values().any(Option::is_none);
    let moves = if busy || unclear { 0 } else { knowledge.moves };
    let next = assign(&workers, &state.pins, &owners, moves);

    let leaving: BTreeSet<NodeId> = workers.iter().filter(|it| it.leaves).map(|it| it.id).collect();
    let mut balances = false;
    let slots: Vec<NextSlot> = plan
        .slots
        .iter()
        .zip(released)
        .zip(next)
        .map(|((slot, released), next)| match (*slot, next) {
            (SlotState::Free, None) => NextSlot::As(SlotState::Free),
            (SlotState::Free, Some(to)) => NextSlot::Taken(to),
            (_, None) if released => NextSlot::As(SlotState::Free),
            (_, Some(to)) if released => NextSlot::Taken(to),
            (SlotState::Owned { node, takeover }, Some(to)) if to != node => {
                balances |= !leaving.contains(&node);
                NextSlot::As(SlotState::Releasing { node, takeover, to, since: generation })
            }
            (SlotState::Releasing { node, takeover, since, .. }, Some(to)) => {
                NextSlot::As(SlotState::Releasing { node, takeover, to, since })
            }
            (unchanged, _) => NextSlot::As(unchanged),
        })
        .collect();
    let unchanged = slots.iter().zip(&plan.slots).all(|(next, slot)| *next == NextSlot::As(*slot));
    (!unchanged).then_some(Draft { generation, slots, balances })
}

impl Draft {
    /// Whether a node takes a slot over.
    pub(crate) fn needs_takeover(&self) -> bool {
        self.slots.iter().any(|next| matches!(next, NextSlot::Taken(_)))
    }

    /// The plan, with the takeover of all who take slots over by it.
    pub(crate) fn finish(self, term: u64, grace: Duration, takeover: Takeover) -> SlotPlan {
        let state = |next| match next {
            NextSlot::As(state) => state,
            NextSlot::Taken(node) => SlotState::Owned { node, takeover },
        };
        let slots = self.slots.into_iter().map(state).collect();
        SlotPlan { generation: self.generation, term, grace, slots }
    }
}

/// Whether the node that worked a slot has certainly stopped.
fn is_released(
    state: &State,
    slot: u32,
    at: &SlotState,
    overdue: &dyn Fn(NodeId, u64) -> bool,
) -> bool {
    let gone = |node: &NodeId| !state.nodes.contains_key(node);
    match at {
        SlotState::Free => false,
        SlotState::Owned { node, .. } => gone(node),
        SlotState::Releasing { node, since, .. } => {
            let confirmed = state.held.get(node).is_some_and(|held| held.confirms(slot, *since));
            gone(node) || confirmed || overdue(*node, *since)
        }
    }
}

/// Who may work: those who have been there for a while or own something already; all, if there is
/// no such node, for then there is nothing to disturb.
fn workers(state: &State, plan: &SlotPlan, settled: &BTreeSet<NodeId>) -> Vec<Worker> {
    let owners: BTreeSet<NodeId> =
        plan.slots.iter().filter_map(SlotState::worker).map(|(node, _)| node).collect();
    let mut workers = BTreeMap::new();
    for (id, record) in &state.nodes {
        let Some(record) = record else {
            // It keeps what it has; this version does not know what else it could do.
            let silent = Worker { receives: false, ..Worker::new(*id, id.to_string(), 0) };
            workers.insert(*id, silent);
            continue;
        };
        let mut worker = Worker::new(*id, record.name.clone(), record.weight);
        let works = record.roles.works && record.agrees(plan.slots.len());
        worker.receives = works && (settled.contains(id) || owners.contains(id));
        worker.leaves = record.draining;
        workers.insert(*id, worker);
    }
    let can = |it: &Worker| it.receives && !it.leaves && it.weight > 0;
    if !workers.values().any(can) {
        for (id, record) in state.records() {
            if let Some(worker) = workers.get_mut(&id) {
                worker.receives = record.roles.works && record.agrees(plan.slots.len());
            }
        }
    }
    workers.into_values().collect()
}

#[cfg(test)]
#[path = "handover_tests.rs"]
mod tests;
