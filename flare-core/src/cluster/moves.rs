//! Takes two plans, one made from the other, and what was known then; gives how slots changed hands.
//! Pure: it is for those who watch the cluster, and decides nothing.

use std::collections::BTreeSet;

use super::plan::{SlotPlan, SlotState};
use super::state::State;
use crate::model::NodeId;

/// How many slots changed hands from one plan to the next, by why they could.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Moves {
    /// No node had them.
    pub(crate) free: usize,
    /// The node that had them is gone.
    pub(crate) orphaned: usize,
    /// The node that had them has given them up.
    pub(crate) handed_over: usize,
    /// The node that had them has had its time.
    pub(crate) forced: usize,
    /// Who had those that were taken by force.
    pub(crate) forced_from: BTreeSet<NodeId>,
    /// The generations of the plans that asked for those that were handed over, or taken by force.
    pub(crate) asked: BTreeSet<u64>,
}

impl Moves {
    pub(crate) fn between(state: &State, last: &SlotPlan, next: &SlotPlan) -> Self {
        let mut moves = Self::default();
        for ((slot, before), after) in last.numbered().zip(&next.slots) {
            let epoch = |state: &SlotState| state.worker().map(|(_, takeover)| takeover.epoch);
            if epoch(after).is_none() || epoch(after) == epoch(before) {
                continue;
            }
            match before {
                SlotState::Free => moves.free += 1,
                SlotState::Owned { .. } => moves.orphaned += 1,
                SlotState::Releasing { node, .. } if !state.nodes.contains_key(node) => {
                    moves.orphaned += 1;
                }
                SlotState::Releasing { node, since, .. } => {
                    moves.asked.insert(*since);
                    let held = state.held.get(node);
                    if held.is_some_and(|held| held.confirms(slot, *since)) {
                        moves.handed_over += 1;
                    } else {
                        moves.forced += 1;
                        moves.forced_from.insert(*node);
                    }
                }
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::held::StillHeld;
    use super::*;
    use crate::model::{Epoch, Takeover, Timestamp};

    fn id(number: u8) -> NodeId {
        NodeId::from_bytes([number; 16])
    }

    fn takeover(epoch: u64) -> Takeover {
        Takeover { epoch: Epoch::new(epoch), at: Timestamp::EPOCH }
    }

    fn owned(node: u8, epoch: u64) -> SlotState {
        SlotState::Owned { node: id(node), takeover: takeover(epoch) }
    }

    fn releasing(node: u8, since: u64) -> SlotState {
        SlotState::Releasing { node: id(node), takeover: takeover(1), to: id(9), since }
    }

    fn plan(slots: Vec<SlotState>) -> SlotPlan {
        SlotPlan { slots, ..SlotPlan::empty(0) }
    }

    #[test]
    fn every_slot_that_changes_hands_is_counted_once_by_why_it_could() {
        let held = StillHeld { generation: 5, slots: [4].into() };
        let state = State {
            nodes: [(id(1), None), (id(2), None)].into(),
            held: [(id(1), Arc::new(held))].into(),
            ..State::default()
        };
        let last = plan(vec![
            SlotState::Free,
            owned(3, 1),
            releasing(3, 4),
            releasing(1, 5),
            releasing(1, 5),
            releasing(2, 4),
            owned(1, 1),
            owned(1, 1),
            releasing(1, 5),
            SlotState::Free,
            owned(3, 1),
        ]);
        let mut next: Vec<SlotState> = (0..6).map(|_| owned(2, 7)).collect();
        // Stays, is asked for, is waited for, has no node to take it, and loses its worker.
        next.extend([
            owned(1, 1),
            releasing(1, 6),
            releasing(1, 5),
            SlotState::Free,
            SlotState::Free,
        ]);
        let moves = Moves::between(&state, &last, &plan(next));
        assert_eq!((moves.free, moves.orphaned, moves.handed_over, moves.forced), (1, 2, 1, 2));
        assert_eq!(moves.forced_from, [id(1), id(2)].into());
        assert_eq!(moves.asked, [4, 5].into());
        assert_eq!(Moves::between(&state, &last, &last), Moves::default());
    }
}
