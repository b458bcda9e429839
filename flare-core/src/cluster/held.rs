//! Takes what a node still works of slots it is to give up; gives the leader's answer to "has it
//! stopped?".

use std::collections::BTreeSet;

/// What a node has confirmed.
///
/// Not the slots it has, but those it is still busy *giving up*, together with the generation of
/// the plan it says this about. Without the generation a node that has not yet read that it was
/// given a slot would look like one that has stopped working it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StillHeld {
    /// The newest plan the node has followed.
    pub(crate) generation: u64,
    /// Slots that plan wants back and the node still works.
    pub(crate) slots: BTreeSet<u32>,
}

impl StillHeld {
    /// Whether the node has certainly stopped working a slot that the plan of generation `since`
    /// wanted back.
    pub(crate) fn confirms(&self, slot: u32, since: u64) -> bool {
        self.generation >= since && !self.slots.contains(&slot)
    }

    /// First and last of each run of neighbours.
    pub(crate) fn runs(&self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for slot in &self.slots {
            match runs.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(*slot) => *last = *slot,
                _ => runs.push((*slot, *slot)),
            }
        }
        runs
    }

    pub(crate) fn from_runs(generation: u64, runs: &[(u32, u32)]) -> Self {
        Self { generation, slots: runs.iter().flat_map(|(first, last)| *first..=*last).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_same_slots() {
        let held = StillHeld { generation: 4, slots: [0, 1, 2, 7, 9, 10].into() };
        assert_eq!(held.runs(), [(0, 2), (7, 7), (9, 10)]);
        assert_eq!(StillHeld::from_runs(4, &held.runs()), held);
        assert_eq!(StillHeld::decode(&held.encode().unwrap()).unwrap(), held);
    }

    #[test]
    fn silence_and_older_plans_confirm_nothing() {
        let held = StillHeld { generation: 4, slots: [3].into() };
        assert!(held.confirms(2, 4) && held.confirms(2, 3));
        assert!(!held.confirms(3, 4), "still worked");
        assert!(!held.confirms(2, 5), "not read yet");
        assert!(!StillHeld::default().confirms(2, 1));
    }
}
