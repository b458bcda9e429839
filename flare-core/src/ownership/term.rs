//! The time during which slots are a node's: what every send and every stored effect of the lanes in
//! them has to respect.

use super::Trust;
use crate::model::{Epoch, Tenure};
use crate::port::Clock;

/// The time during which slots are this node's. Several may be under way, each with its own epoch; a
/// slot is worked under one of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Term {
    /// Since when, and what no other node can have written since.
    pub tenure: Tenure,
    /// What effects are stored under. Later than the tenure's if lanes began anew meanwhile.
    pub epoch: Epoch,
    /// Until when each slot is certainly this node's; to be asked before every send.
    pub trust: Trust,
}

impl Term {
    /// A term that begins with its tenure.
    pub(crate) fn new(tenure: Tenure, trust: Trust) -> Self {
        Self { tenure, epoch: tenure.epoch, trust }
    }

    /// The same, where lanes begin anew under a later epoch.
    pub(crate) fn under(&self, tenure: Tenure, epoch: Epoch) -> Self {
        Self { tenure, epoch, trust: self.trust.clone() }
    }

    /// Whether a slot is certainly still this node's: only then may a send start.
    pub(crate) fn is_trusted(&self, slot: u32, clock: &dyn Clock) -> bool {
        self.trust.is_trusted(slot, clock)
    }
}
