//! The time during which slots are a node's: what every send and every stored effect of the lanes in
//! them has to respect.

use super::Trust;
use crate::model::{Epoch, Takeover};
use crate::port::Clock;

/// The time during which slots are this node's. Several may be under way, each with its own epoch; a
/// slot is worked under one of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Term {
    /// Since when, and what no other node can have written since.
    pub takeover: Takeover,
    /// What effects are stored under. Later than the take-over's if lanes began anew meanwhile.
    pub epoch: Epoch,
    /// Until when each slot is certainly this node's; to be asked before every send.
    pub trust: Trust,
}

impl Term {
    /// A term that begins with a take-over.
    pub(crate) fn new(takeover: Takeover, trust: Trust) -> Self {
        Self { takeover, epoch: takeover.epoch, trust }
    }

    /// The same, where lanes begin anew under a later epoch.
    pub(crate) fn under(&self, takeover: Takeover, epoch: Epoch) -> Self {
        Self { takeover, epoch, trust: self.trust.clone() }
    }

    /// Whether a slot is certainly still this node's: only then may a send start.
    pub(crate) fn is_trusted(&self, slot: u32, clock: &dyn Clock) -> bool {
        self.trust.is_trusted(slot, clock)
    }
}
