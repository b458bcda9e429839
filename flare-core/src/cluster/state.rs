//! Takes keys and their changes; gives what they say about the cluster at one point in history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::held::StillHeld;
use super::keys::Key;
use super::plan::SlotPlan;
use super::record::NodeRecord;
use crate::model::NodeId;
use crate::port::{Entry, KeyChange, KeyEvent, LeaseId, Snapshot, StoreRevision};

/// All keys of the cluster, understood. Every node that read as far has the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// How far this was read; nothing was, while it is 0.
    pub(crate) revision: StoreRevision,
    /// Who is there. One whose record cannot be read is there all the same.
    pub(crate) nodes: BTreeMap<NodeId, Option<Arc<NodeRecord>>>,
    pub(crate) held: BTreeMap<NodeId, Arc<StillHeld>>,
    /// Who was asked to leave.
    pub(crate) drains: BTreeSet<NodeId>,
    pub(crate) leader: Option<Leader>,
    pub(crate) plan: Option<StoredPlan>,
    pub(crate) pins: Arc<BTreeMap<u32, String>>,
}

/// Who leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leader {
    /// No node that could be named, if the value cannot be read.
    pub(crate) node: Option<NodeId>,
    /// The revision that made it the leader: later leaders have later ones.
    pub(crate) term: StoreRevision,
    pub(crate) lease: Option<LeaseId>,
}

/// The plan as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredPlan {
    /// None, if it cannot be read: then no node may write another one, nor work by it.
    pub(crate) plan: Option<Arc<SlotPlan>>,
    pub(crate) revision: StoreRevision,
}

impl StoredPlan {
    pub(crate) fn read(entry: &Entry) -> Self {
        let plan = SlotPlan::decode(&entry.value).inspect_err(|error| {
            tracing::error!(?error, "the cluster's plan cannot be read");
        });
        Self { plan: plan.ok().map(Arc::new), revision: entry.revision }
    }
}

impl State {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let mut state = Self::default();
        for entry in &snapshot.entries {
            state.written(entry);
        }
        state.revision = snapshot.revision;
        state
    }

    /// The same after one more change.
    pub(crate) fn apply(&mut self, event: &KeyEvent) {
        match &event.kind {
            KeyChange::Written(entry) => self.written(entry),
            KeyChange::Deleted => self.deleted(&event.key),
        }
        self.revision = self.revision.max(event.revision);
    }

    fn written(&mut self, entry: &Entry) {
        match Key::parse(&entry.key) {
            Some(Key::Node(id)) => {
                let record = NodeRecord::decode(&entry.value).map(Arc::new);
                let record = record.inspect_err(|error| {
                    tracing::warn!(?error, node = %id, "a node's record cannot be read");
                });
                self.nodes.insert(id, record.ok());
            }
            Some(Key::Held(id)) => {
                // What cannot be read confirms nothing: the leader waits for the deadline.
                match StillHeld::decode(&entry.value) {
                    Ok(held) => drop(self.held.insert(id, Arc::new(held))),
                    Err(error) => {
                        tracing::warn!(?error, node = %id, "a confirmation cannot be read");
                        self.held.remove(&id);
                    }
                }
            }
            Some(Key::Drain(id)) => _ = self.drains.insert(id),
            Some(Key::Leader) => {
                let node = str::from_utf8(&entry.value).ok().and_then(|id| id.parse().ok());
                self.leader = Some(Leader { node, term: entry.revision, lease: entry.lease });
            }
            Some(Key::Plan) => self.plan = Some(StoredPlan::read(entry)),
            Some(Key::Pins) => match serde_json::from_slice(&entry.value) {
                Ok(pins) => self.pins = Arc::new(pins),
                Err(error) => tracing::warn!(%error, "pins cannot be read, the old ones stay"),
            },
            None => {}
        }
    }

    fn deleted(&mut self, key: &str) {
        match Key::parse(key) {
            Some(Key::Node(id)) => drop(self.nodes.remove(&id)),
            Some(Key::Held(id)) => drop(self.held.remove(&id)),
            Some(Key::Drain(id)) => _ = self.drains.remove(&id),
            Some(Key::Leader) => self.leader = None,
            Some(Key::Plan) => self.plan = None,
            Some(Key::Pins) => self.pins = Arc::default(),
            None => {}
        }
    }

    /// Whether keys were read at all.
    pub(crate) fn is_read(&self) -> bool {
        self.revision > StoreRevision::default()
    }

    /// Those who are there and can be understood.
    pub(crate) fn records(&self) -> impl Iterator<Item = (NodeId, &NodeRecord)> {
        self.nodes.iter().filter_map(|(id, record)| Some((*id, record.as_deref()?)))
    }

    /// Whether all nodes are set to so many slots: then a plan of another number belongs to none of them.
    pub(crate) fn all_want(&self, slots: u32) -> bool {
        let wants = |record: &Option<Arc<NodeRecord>>| {
            record.as_ref().is_some_and(|record| record.slots == Some(slots))
        };
        self.nodes.values().all(wants)
    }

    /// Whether a node other than `me` could lead for longer than `me`, who leaves.
    pub(crate) fn has_other_leader(&self, me: NodeId) -> bool {
        self.records().any(|(id, record)| id != me && record.roles.leads && !record.draining)
    }

    /// Whether a node other than `me` could work slots, if only because no other does.
    pub(crate) fn has_other_worker(&self, me: NodeId) -> bool {
        self.records().any(|(id, it)| id != me && it.is_working())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::keys;
    use super::super::record::Roles;
    use super::*;

    fn id(number: u8) -> NodeId {
        NodeId::from_bytes([number; 16])
    }

    fn entry(key: &str, value: impl Into<bytes::Bytes>, revision: u64) -> Entry {
        let revision = StoreRevision::new(revision);
        Entry::new(key, value, revision, revision, Some(LeaseId::new(1)))
    }

    #[test]
    fn a_list_and_its_changes_say_the_same() {
        let record = NodeRecord::new("a".to_owned(), Roles::ALL, 1, Duration::ZERO);
        let entries = vec![
            entry(keys::LEADER, id(1).to_string(), 3),
            entry(&keys::node(id(1)), record.encode().unwrap(), 1),
            entry(&keys::node(id(2)), "from the future", 2),
            entry(keys::PLAN, SlotPlan::empty(4).encode(), 4),
            entry("cluster/pins", r#"{"3":"a"}"#, 5),
            entry("cluster/else", "", 6),
        ];
        let mut followed = State::default();
        for entry in &entries {
            let kind = KeyChange::Written(entry.clone());
            followed.apply(&KeyEvent::new(entry.revision, entry.key.clone(), kind));
        }
        let listed = State::new(&Snapshot::new(entries, StoreRevision::new(6)));
        assert_eq!(format!("{listed:?}"), format!("{followed:?}"));
        assert_eq!(listed.nodes.len(), 2, "who cannot be understood is there all the same");
        assert_eq!(listed.records().count(), 1);
        assert_eq!(listed.leader.and_then(|leader| leader.node), Some(id(1)));
        assert_eq!(listed.plan.as_ref().map(|plan| plan.revision), Some(StoreRevision::new(4)));
        assert_eq!(listed.pins.get(&3).map(String::as_str), Some("a"));
        for key in [keys::LEADER, &keys::node(id(2)), keys::PLAN] {
            followed.apply(&KeyEvent::new(StoreRevision::new(9), key, KeyChange::Deleted));
        }
        assert!(followed.leader.is_none() && followed.plan.is_none());
        assert_eq!(followed.nodes.len(), 1);
    }

    #[test]
    fn an_unreadable_plan_is_not_no_plan() {
        let state =
            State::new(&Snapshot::new(vec![entry(keys::PLAN, vec![99], 4)], StoreRevision::new(4)));
        assert!(state.plan.is_some_and(|stored| stored.plan.is_none()));
    }
}
