//! Takes what the leader decided; gives the one value that says who works which slot. Its bytes
//! are made in `codec`.

mod codec;

use std::time::Duration;

use crate::model::{NodeId, Takeover};

/// Who works which slot, as the leader last said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotPlan {
    /// Counts plans: every one is made from the one before.
    pub generation: u64,
    /// Under which leadership it was made. A leader of an earlier one must not write any more.
    pub term: u64,
    /// How long the owner of a slot may take to give it up, counted from when the plan that asked
    /// it to was written.
    pub grace: Duration,
    /// The slots, by number.
    pub slots: Vec<SlotState>,
}

/// Whose a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotState {
    /// No node's.
    Free,
    /// This node works it.
    #[non_exhaustive]
    Owned {
        /// Which incarnation.
        node: NodeId,
        /// Since when, under which epoch.
        takeover: Takeover,
    },
    /// This node still works it, and is to finish.
    #[non_exhaustive]
    Releasing {
        /// Which incarnation still works it.
        node: NodeId,
        /// Since when, under which epoch.
        takeover: Takeover,
        /// Who is to work it next.
        to: NodeId,
        /// The generation of the plan that asked for it.
        since: u64,
    },
}

impl SlotState {
    /// Who works it, if anybody.
    pub fn worker(&self) -> Option<(NodeId, Takeover)> {
        match *self {
            Self::Free => None,
            Self::Owned { node, takeover } | Self::Releasing { node, takeover, .. } => {
                Some((node, takeover))
            }
        }
    }

    /// Whether it is on its way from one node to another.
    pub fn is_moving(&self) -> bool {
        matches!(self, Self::Releasing { .. })
    }
}

impl SlotPlan {
    /// The plan before the first one.
    pub(crate) fn empty(slots: u32) -> Self {
        let slots = vec![SlotState::Free; slots as usize];
        Self { generation: 0, term: 0, grace: Duration::ZERO, slots }
    }

    /// The same with so many slots, of which no node has any.
    pub(crate) fn emptied(&self, slots: u32) -> Self {
        Self { generation: self.generation, term: self.term, ..Self::empty(slots) }
    }

    /// Whether this node works any slot by it.
    pub(crate) fn names(&self, node: NodeId) -> bool {
        self.slots.iter().any(|slot| slot.worker().is_some_and(|(worker, _)| worker == node))
    }

    /// The slots with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &SlotState)> {
        (0..).zip(&self.slots)
    }
}
