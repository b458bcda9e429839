//! Takes the keys of the cluster; gives operators a picture of it: the same from every node, without
//! asking any of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::keys::{NODES, PREFIX};
use super::plan::{SlotPlan, SlotState};
use super::record::NodeRecord;
use super::state::State;
use crate::error::Result;
use crate::model::NodeId;
use crate::port::{Entry, Lease};

/// How a cluster is, in the manner of Elasticsearch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// Every slot is worked.
    Green,
    /// Every slot is worked, and something is under way: slots move, a node leaves, or there is no
    /// leader who would notice a loss.
    Yellow,
    /// There are slots that no node works.
    Red,
}

impl Health {
    /// The colour in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

/// A cluster at one point in the history of its store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterView {
    /// How it is.
    pub health: Health,
    /// Who makes the plan, if anybody.
    pub leader: Option<NodeId>,
    /// Who is there, in the order in which they started.
    pub nodes: Vec<NodeView>,
    /// The plan, if there was ever one that can be read.
    pub plan: Option<Arc<SlotPlan>>,
    /// How many slots no node works.
    pub unassigned: usize,
    /// How many slots are on their way from one node to another.
    pub moving: usize,
    /// Slots that belong to a node, by its name, whichever others there are.
    pub pins: Arc<BTreeMap<u32, String>>,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeView {
    /// Which incarnation.
    pub id: NodeId,
    /// What it says of itself; nothing, if it runs a version that this one does not understand.
    pub record: Option<Arc<NodeRecord>>,
    /// How many slots it works.
    pub slots: usize,
}

impl ClusterView {
    /// Reads the cluster from the store.
    pub async fn read(lease: &dyn Lease) -> Result<Self> {
        Ok(Self::of(&State::new(&lease.list(PREFIX).await?)))
    }

    pub(crate) fn of(state: &State) -> Self {
        let plan = state.plan.as_ref().and_then(|stored| stored.plan.clone());
        let slots: &[SlotState] = plan.as_ref().map_or(&[], |plan| &plan.slots);
        let mut worked: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut unassigned = 0;
        for slot in slots {
            // A node that is gone works nothing, even if no leader has said so yet.
            match slot.worker().filter(|(node, _)| state.nodes.contains_key(node)) {
                Some((node, _)) => *worked.entry(node).or_default() += 1,
                None => unassigned += 1,
            }
        }
        let moving = slots.iter().filter(|slot| slot.is_moving()).count();
        let leader = state.leader.and_then(|leader| leader.node);
        let leaving = state.records().any(|(_, record)| record.draining);
        let health = if slots.is_empty() || unassigned > 0 {
            Health::Red
        } else if moving > 0 || leaving || leader.is_none() {
            Health::Yellow
        } else {
            Health::Green
        };
        let node = |(id, record): (&NodeId, &Option<Arc<NodeRecord>>)| NodeView {
            id: *id,
            record: record.clone(),
            slots: worked.get(id).copied().unwrap_or(0),
        };
        let nodes = state.nodes.iter().map(node).collect();
        let pins = Arc::clone(&state.pins);
        Self { health, leader, nodes, plan, unassigned, moving, pins }
    }

    /// Whether a node other than this one works slots, or could.
    pub fn has_worker_beside(&self, id: NodeId) -> bool {
        let works = |node: &NodeView| node.record.as_ref().is_none_or(|it| it.is_working());
        self.nodes.iter().any(|node| node.id != id && works(node))
    }

    /// Who works a slot, if that node is there: one that is gone works nothing, even if no leader
    /// has said so yet.
    pub fn worker(&self, slot: u32) -> Option<NodeId> {
        let (worker, _) = self.slot(slot)?.worker()?;
        self.nodes.iter().any(|node| node.id == worker).then_some(worker)
    }

    /// The owner of a slot and its state; nothing for a slot that does not exist.
    pub fn slot(&self, slot: u32) -> Option<&SlotState> {
        self.plan.as_ref()?.slots.get(slot as usize)
    }
}

/// Whether any node is there that works slots, or could.
pub(crate) async fn has_workers(lease: &dyn Lease) -> Result<bool> {
    let works = |entry: &Entry| match NodeRecord::decode(&entry.value) {
        Ok(record) => record.is_working(),
        // One of a newer version.
        Err(_) => true,
    };
    Ok(lease.list(NODES).await?.entries.iter().any(works))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::record::Roles;
    use super::super::state::{Leader, StoredPlan};
    use super::*;
    use crate::model::{Epoch, Takeover, Timestamp};
    use crate::port::StoreRevision;

    fn id(number: u8) -> NodeId {
        NodeId::from_bytes([number; 16])
    }

    fn state(slots: Vec<SlotState>) -> State {
        let record =
            Arc::new(NodeRecord::new("a".to_owned(), Roles::ALL, 1, Duration::from_secs(1)));
        let plan = SlotPlan { slots, ..SlotPlan::empty(0) };
        let revision = StoreRevision::new(1);
        State {
            nodes: [(id(1), Some(Arc::clone(&record))), (id(2), Some(record))].into(),
            leader: Some(Leader { node: Some(id(1)), term: revision, lease: None }),
            plan: Some(StoredPlan { plan: Some(Arc::new(plan)), revision }),
            ..State::default()
        }
    }

    fn owned(node: u8) -> SlotState {
        let takeover = Takeover { epoch: Epoch::new(1), at: Timestamp::EPOCH };
        SlotState::Owned { node: id(node), takeover }
    }

    #[test]
    fn health_says_the_worst() {
        let green = state(vec![owned(1), owned(2), owned(2)]);
        let view = ClusterView::of(&green);
        assert_eq!((view.health, view.unassigned, view.moving), (Health::Green, 0, 0));
        assert_eq!(view.nodes.iter().map(|node| node.slots).collect::<Vec<_>>(), [1, 2]);

        let SlotState::Owned { node, takeover } = owned(1) else { unreachable!() };
        let moving = SlotState::Releasing { node, takeover, to: id(2), since: 1 };
        let view = ClusterView::of(&state(vec![moving, owned(2)]));
        assert_eq!((view.health, view.moving), (Health::Yellow, 1));
        let view = ClusterView::of(&State { leader: None, ..green.clone() });
        assert_eq!(view.health, Health::Yellow);

        let view = ClusterView::of(&state(vec![owned(9), owned(2), SlotState::Free]));
        assert_eq!((view.health, view.unassigned), (Health::Red, 2));
        assert_eq!([0, 1, 2, 3].map(|slot| view.worker(slot)), [None, Some(id(2)), None, None]);
        assert_eq!(ClusterView::of(&State { plan: None, ..green }).health, Health::Red);
    }
}
