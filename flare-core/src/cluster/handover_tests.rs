//! Takes clusters in the middle of something; checks that no slot is taken from who may work it.

use std::sync::Arc;

use super::super::held::StillHeld;
use super::super::record::{NodeRecord, Roles};
use super::*;
use crate::model::{Epoch, Timestamp};

fn id(number: u8) -> NodeId {
    NodeId::from_bytes([number; 16])
}

fn takeover(epoch: u64) -> Takeover {
    Takeover { epoch: Epoch::new(epoch), at: Timestamp::EPOCH }
}

fn record(number: u8) -> NodeRecord {
    NodeRecord::new(format!("n{number}"), Roles::ALL, 1, Duration::from_secs(15))
}

fn there(nodes: &[u8]) -> State {
    let record = |number: &u8| (id(*number), Some(Arc::new(record(*number))));
    State { nodes: nodes.iter().map(record).collect(), ..State::default() }
}

fn drain(state: &mut State, number: u8) {
    let mut draining = record(number);
    draining.draining = true;
    state.nodes.insert(id(number), Some(Arc::new(draining)));
}

struct Leader {
    plan: SlotPlan,
    epoch: u64,
    settled: BTreeSet<NodeId>,
    late: bool,
    moves: usize,
}

impl Leader {
    fn new(slots: u32) -> Self {
        Self {
            plan: SlotPlan::empty(slots),
            epoch: 0,
            settled: BTreeSet::new(),
            late: false,
            moves: 99,
        }
    }

    /// Makes the next plan, if there is to be one.
    fn plan(&mut self, state: &State) -> bool {
        let overdue = |_, _| self.late;
        let knowledge = Knowledge { settled: &self.settled, overdue: &overdue, moves: self.moves };
        let Some(draft) = draft(state, &self.plan, &knowledge) else { return false };
        self.epoch += u64::from(draft.needs_takeover());
        self.plan = draft.finish(1, Duration::from_secs(30), takeover(self.epoch));
        true
    }

    fn owners(&self, node: u8) -> usize {
        let owned = |slot: &&SlotState| matches!(slot, SlotState::Owned { node: it, .. } if *it == id(node));
        self.plan.slots.iter().filter(owned).count()
    }

    fn moving(&self) -> usize {
        self.plan.slots.iter().filter(|slot| slot.is_moving()).count()
    }
}

fn confirm(state: &mut State, node: u8, generation: u64, still: &[u32]) {
    let held = StillHeld { generation, slots: still.iter().copied().collect() };
    state.held.insert(id(node), Arc::new(held));
}

#[test]
fn a_cold_start_assigns_at_once_and_then_rests() {
    let mut leader = Leader::new(10);
    let state = there(&[1, 2]);
    assert!(leader.plan(&state));
    assert_eq!(leader.owners(1) + leader.owners(2), 10);
    assert!(!leader.plan(&state));
    assert_eq!(leader.plan.generation, 1);
}

#[test]
fn who_joins_waits_until_settled_and_for_the_confirmation() {
    let mut leader = Leader::new(10);
    leader.plan(&there(&[1]));
    let mut state = there(&[1, 2]);
    assert!(!leader.plan(&state), "not settled");
    leader.settled.insert(id(2));
    assert!(leader.plan(&state));
    let moving = leader.moving();
    assert!(moving > 0 && leader.owners(2) == 0);
    assert!(!leader.plan(&state), "no node confirmed");
    confirm(&mut state, 1, 1, &[]);
    assert!(!leader.plan(&state), "said of an earlier plan");
    let one = leader.plan.numbered().find(|(_, slot)| slot.is_moving()).map(|(slot, _)| slot);
    confirm(&mut state, 1, 2, &[one.unwrap()]);
    assert!(leader.plan(&state));
    assert_eq!((leader.owners(2), leader.moving()), (moving - 1, 1));
    leader.late = true;
    assert!(leader.plan(&state));
    assert_eq!((leader.owners(2), leader.moving()), (moving, 0));
    let epoch = |node| {
        let of = |slot: &SlotState| slot.worker().filter(|(it, _)| *it == id(node));
        leader.plan.slots.iter().filter_map(of).map(|(_, takeover)| takeover.epoch.get()).max()
    };
    assert!(epoch(2) > epoch(1));
}

#[test]
fn a_loss_is_taken_over_at_once_and_nothing_else_moves_then() {
    let mut leader = Leader::new(30);
    leader.plan(&there(&[1, 2, 3]));
    let before = leader.plan.clone();
    leader.settled = [id(1), id(3)].into();
    assert!(leader.plan(&there(&[1, 3])));
    for (before, after) in before.slots.iter().zip(&leader.plan.slots) {
        let lost = before.worker().is_some_and(|(node, _)| node == id(2));
        assert!(lost != (before == after));
        assert!(!after.is_moving());
    }
}

#[test]
fn a_node_that_drains_hands_all_over_and_gets_nothing() {
    let mut leader = Leader::new(30);
    leader.moves = 1;
    let mut state = there(&[1, 2, 3]);
    leader.plan(&state);
    let had = leader.owners(2);
    drain(&mut state, 2);
    assert!(leader.plan(&state));
    assert_eq!((leader.owners(2), leader.moving()), (0, had));
    confirm(&mut state, 2, 2, &[]);
    assert!(leader.plan(&state));
    assert_eq!((leader.owners(2), leader.moving()), (0, 0));
    // With no node to take over it keeps what it has: stopping is its own affair.
    drain(&mut state, 1);
    drain(&mut state, 3);
    assert!(!leader.plan(&state));
}

#[test]
fn when_the_receiver_dies_another_one_gets_the_slot_after_the_release() {
    let mut leader = Leader::new(30);
    let mut state = there(&[1, 2, 3]);
    leader.plan(&state);
    drain(&mut state, 2);
    leader.plan(&state);
    state.nodes.remove(&id(3));
    assert!(leader.plan(&state));
    assert!(leader.plan.slots.iter().all(|slot| match slot {
        SlotState::Releasing { node, to, since, .. } =>
            *node == id(2) && *to == id(1) && *since == 2,
        other => other.worker().is_some_and(|(node, _)| node == id(1)),
    }));
}

#[test]
fn whom_nobody_understands_keeps_its_slots_and_stops_the_balancing() {
    let mut leader = Leader::new(30);
    let mut state = there(&[1, 2]);
    leader.plan(&state);
    state.nodes.insert(id(2), None);
    state.nodes.insert(id(3), Some(Arc::new(record(3))));
    leader.settled = [id(3)].into();
    assert!(!leader.plan(&state));
}

#[test]
fn without_workers_slots_are_nobody_s() {
    let mut leader = Leader::new(3);
    leader.plan(&there(&[1]));
    assert!(leader.plan(&there(&[])));
    assert!(leader.plan.slots.iter().all(|slot| *slot == SlotState::Free));
}
