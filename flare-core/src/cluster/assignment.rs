//! Takes who is there, with what weight, and who works which slot; gives who should work it next.
//! Decides without await, clock or log: the same input gives the same answer on every machine.

mod balance;
mod preference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use balance::SlotShares;
use preference::Preference;

use crate::model::NodeId;

/// A node as far as the assignment is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Worker {
    /// Which incarnation.
    pub id: NodeId,
    /// What it is called. Preferences follow the name, so that a node that was started again is
    /// given much of what it had.
    pub name: String,
    /// Its part of the slots, in relation to the others' weights. With 0 it stands by: it is given
    /// slots only while no node has a weight, and gives them away, slowly, once one has.
    pub weight: u32,
    /// Whether it may be given slots.
    pub receives: bool,
    /// Whether it is about to leave: all its slots go at once, if there is anybody to take them.
    pub leaves: bool,
}

impl Worker {
    /// A node that works and stays.
    pub fn new(id: NodeId, name: impl Into<String>, weight: u32) -> Self {
        Self { id, name: name.into(), weight, receives: true, leaves: false }
    }

    /// Whether anything may be given to it.
    fn is_there(&self) -> bool {
        self.receives && !self.leaves
    }

    /// What is given to it among others: to one of weight 0 nothing.
    fn share(&self) -> u32 {
        if self.is_there() { self.weight } else { 0 }
    }
}

/// Who works each slot next.
///
/// - A slot without owner, or whose owner is not among `workers`, goes at once to the node it
///   prefers (weighted rendezvous hashing) among those that have room; without any it has no owner.
///   *Room* is up to ceil(1.1 × fair share), the edge of what is balanced, and so below the cap of
///   ceil(1.2 × fair share): what is placed need not be moved again. Where few slots are to be
///   placed, nodes below floor(0.9 × fair share) come first.
/// - The slots of a node that leaves go the same way.
/// - Others stay where they are, unless a node has more than ceil(1.1 × fair share) or less than
///   floor(0.9 × fair share): then at most `moves` slots go from those with most to those with
///   least, until everybody is within these bounds.
/// - A slot in `pins` goes to the node of that name while it is there to receive, whatever it has.
///
/// So a node has more than its cap only while it has what it was given when its share was greater
/// (another node joined, or its weight fell), or by pins; it is given nothing then, and gives away up
/// to `moves` slots each time it is asked.
///
/// ```
/// use flare_core::internals::{Worker, assign};
/// use flare_core::model::{IdSource, Timestamp};
///
/// let ids = IdSource::seeded(1);
/// let node = |name| Worker::new(ids.next(Timestamp::EPOCH).into(), name, 1);
/// let workers = [node("a"), node("b"), node("c")];
/// let owners = assign(&workers, &Default::default(), &[None; 9], 0);
/// for worker in &workers {
///     assert!(owners.iter().filter(|owner| **owner == Some(worker.id)).count() <= 4);
/// }
/// // Without b only b's slots move.
/// let next = assign(&[workers[0].clone(), workers[2].clone()], &Default::default(), &owners, 0);
/// for (before, after) in owners.iter().zip(next) {
///     assert!(*before == after || *before == Some(workers[1].id));
/// }
/// ```
pub fn assign(
    workers: &[Worker],
    pins: &BTreeMap<u32, String>,
    owners: &[Option<NodeId>],
    moves: usize,
) -> Vec<Option<NodeId>> {
    // In an order of their own, so that the answer does not depend on the caller's.
    let mut workers: Vec<&Worker> = workers.iter().collect();
    workers.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    let index: HashMap<NodeId, usize> =
        workers.iter().enumerate().map(|(at, worker)| (worker.id, at)).collect();
    let owners: Vec<Option<usize>> =
        owners.iter().map(|owner| owner.and_then(|id| index.get(&id).copied())).collect();
    let mut plan = Draft::new(&workers, pins, owners);
    let moved = plan.follow_pins(moves);
    plan.place();
    plan.balance(moves.saturating_sub(moved));
    plan.owners.into_iter().map(|owner| owner.map(|at| workers[at].id)).collect()
}

/// A plan in the making; workers are known by their index.
struct Draft<'a> {
    workers: &'a [&'a Worker],
    preference: Preference,
    shares: SlotShares,
    owners: Vec<Option<usize>>,
    /// Where each pinned slot belongs, if that node is there.
    pins: BTreeMap<usize, usize>,
}

impl<'a> Draft<'a> {
    fn new(
        workers: &'a [&'a Worker],
        pins: &BTreeMap<u32, String>,
        owners: Vec<Option<usize>>,
    ) -> Self {
        let mut weights: Vec<u32> = workers.iter().map(|worker| worker.share()).collect();
        if weights.iter().all(|weight| *weight == 0) {
            // Only those who stand by are there.
            weights = workers.iter().map(|worker| u32::from(worker.is_there())).collect();
        }
        let preference = Preference::new(workers.iter().map(|it| it.name.as_str()), &weights);
        let mut shares = SlotShares::new(&weights, owners.len());
        for owner in owners.iter().flatten() {
            shares.give(*owner);
        }
        let home = |name: &String| {
            let mut weighted = workers.iter().zip(&weights);
            weighted.position(|(it, weight)| *weight > 0 && it.name == *name)
        };
        let pins = pins
            .iter()
            .filter_map(|(slot, name)| Some((usize::try_from(*slot).ok()?, home(name)?)))
            .filter(|(slot, _)| *slot < owners.len())
            .collect();
        Self { workers, preference, shares, owners, pins }
    }

    fn set_owner(&mut self, slot: usize, to: usize) {
        if let Some(from) = self.owners[slot].replace(to) {
            self.shares.take(from);
        }
        self.shares.give(to);
    }

    /// Brings pinned slots home; tells how many of them other nodes work.
    fn follow_pins(&mut self, moves: usize) -> usize {
        let mut moved = 0;
        for (slot, home) in self.pins.clone() {
            let stays = |at: usize| !self.workers[at].leaves;
            match self.owners[slot] {
                Some(owner) if owner == home => continue,
                Some(owner) if stays(owner) && moved == moves => continue,
                Some(owner) if stays(owner) => moved += 1,
                _ => {}
            }
            self.set_owner(slot, home);
        }
        moved
    }

    /// Finds an owner for slots that have none, or whose owner leaves.
    fn place(&mut self) {
        let waits = |owner: &Option<usize>| owner.is_none_or(|at| self.workers[at].leaves);
        let waiting: Vec<usize> =
            (0..self.owners.len()).filter(|slot| waits(&self.owners[*slot])).collect();
        for (done, slot) in waiting.iter().enumerate() {
            let left = waiting.len() - done;
            // Those below the band first, once there are only enough slots left for them.
            let needy = self.shares.needed() >= left;
            let may = |at: usize| {
                if needy { self.shares.is_under(at) } else { self.shares.has_room(at) }
            };
            let found = self.preference.first(*slot, may);
            let found =
                found.or_else(|| self.preference.first(*slot, |at| self.shares.has_room(at)));
            if let Some(to) = found {
                self.set_owner(*slot, to);
            }
        }
    }

    /// Moves slots from those that have most to those that have least.
    fn balance(&mut self, moves: usize) {
        let fixed = self.pins.iter().filter(|(slot, home)| self.owners[**slot] == Some(**home));
        let mut fixed_at = vec![0; self.workers.len()];
        for (_, home) in fixed {
            fixed_at[*home] += 1;
        }
        let mut flow = self.shares.flow(moves, &fixed_at);
        for slot in 0..self.owners.len() {
            if flow.is_done() {
                return;
            }
            let Some(owner) = self.owners[slot].filter(|owner| flow.gives(*owner)) else {
                continue;
            };
            if self.pins.get(&slot) == Some(&owner) {
                continue;
            }
            if let Some(to) = self.preference.first(slot, |at| flow.takes(at)) {
                flow.pass(owner, to);
                self.owners[slot] = Some(to);
            }
        }
    }
}
