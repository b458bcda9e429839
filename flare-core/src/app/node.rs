//! Takes a runtime's signs of life; gives what this node is doing.

use std::time::Duration;

use super::flare::Flare;
use crate::cluster::Membership;
use crate::model::{NodeId, Timestamp, Unreadable};
use crate::pipeline::{LoopReport, PutRates};

/// What one node, a handle with its runtime, is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NodeReport {
    /// What it is known by, fresh for every start and whenever it had to register again.
    pub id: NodeId,
    /// When it was built.
    pub started_at: Timestamp,
    /// The time of this report.
    pub now: Timestamp,
    /// Whether its runtime runs.
    pub running: bool,
    /// How it stands in its cluster. One that was drained has [left](Membership::Left), and works no
    /// lanes until it is started again.
    pub membership: Membership,
    /// Lanes it works.
    pub lanes: usize,
    /// Consumers it works.
    pub consumers: usize,
    /// Slots that all lanes are hashed onto, whichever node works them.
    pub slots: u32,
    /// The puts and deletes it takes, a second.
    pub puts: PutRates,
    /// What its loops do, by name.
    pub loops: Vec<LoopReport>,
    /// The stored records that this process met of late and could not read: nothing is done for
    /// them here, and everything for all others.
    pub unreadable: Vec<Unreadable>,
}

impl NodeReport {
    /// The loops that have had something to do for `limit` without getting anywhere.
    pub fn stuck(&self, limit: Duration) -> impl Iterator<Item = &LoopReport> {
        self.loops.iter().filter(move |it| it.is_stuck(self.now, limit))
    }
}

impl Flare {
    /// What this handle's runtime is doing.
    pub fn node(&self) -> NodeReport {
        let context = self.context();
        let registered = self.member().node();
        NodeReport {
            id: registered.unwrap_or(context.node),
            started_at: context.started_at(),
            now: context.now(),
            running: context.progress.is_running(),
            membership: self.member().membership(),
            lanes: context.progress.lanes(),
            consumers: context.progress.consumers(),
            slots: context.slots,
            puts: context.puts.rates(context.now()),
            loops: context.loops(),
            unreadable: context.unreadable_records(),
        }
    }
}
