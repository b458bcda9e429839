//! Takes what is to be named; gives its key in the coordination store, and back.
//!
//! | key | bound to | written by | holds |
//! |---|---|---|---|
//! | `cluster/nodes/<incarnation>` | the node's lease | the node | [`NodeRecord`](super::NodeRecord) |
//! | `cluster/leader` | the leader's lease | the node that wins it | the leader's incarnation |
//! | `cluster/plan` | nothing | the leader | [`SlotPlan`](SlotPlan) |
//! | `cluster/held/<incarnation>` | the node's lease | the node | what it confirmed of releases |
//! | `cluster/drains/<incarnation>` | the node's lease | operators | nothing: the node is to leave |
//! | `cluster/news` | nothing | any node | the change feed: each write is an announcement to all |
//! | `cluster/pins` | nothing | operators | slots that belong to a node, by its name |
//! | `flare/pins/<slot>` | nothing | operators | the subscription that has this reserved slot |
//! | `flare/owner` | nothing | the first node | that a cluster works these stores: a runtime of before there was one for every store takes it, bound to its lease, and works all slots while it has it |

use crate::model::NodeId;

/// What all keys of a cluster begin with.
pub(crate) const PREFIX: &str = "cluster/";
/// Whose value says who leads.
pub(crate) const LEADER: &str = "cluster/leader";
/// Whose value says who works what.
pub(crate) const PLAN: &str = "cluster/plan";
/// Whose holder, a runtime of before, works all slots by itself; kept by the cluster so that none does.
pub(crate) const OWNER: &str = "flare/owner";
/// What the keys begin with that say which subscription has a reserved slot.
pub(crate) const RESERVED: &str = "flare/pins/";
/// The change feed: its every write is an announcement to all nodes.
pub(crate) const FEED: &str = "cluster/news";
/// Whose value says which slots belong to which node.
pub(crate) const PINS: &str = "cluster/pins";
pub(crate) const NODES: &str = "cluster/nodes/";
const HELD: &str = "cluster/held/";
const DRAINS: &str = "cluster/drains/";

/// The key of a node's record.
pub(crate) fn node(id: NodeId) -> String {
    format!("{NODES}{id}")
}

/// The key of what a node confirmed.
pub(crate) fn held(id: NodeId) -> String {
    format!("{HELD}{id}")
}

/// The key that asks a node to leave.
pub(crate) fn drain(id: NodeId) -> String {
    format!("{DRAINS}{id}")
}

/// What a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Node(NodeId),
    Held(NodeId),
    Drain(NodeId),
    Leader,
    Plan,
    Pins,
}

impl Key {
    /// What this key names; nothing, if it is none of ours.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let id = |prefix| key.strip_prefix(prefix).and_then(|id: &str| id.parse().ok());
        match key {
            LEADER => Some(Self::Leader),
            PLAN => Some(Self::Plan),
            PINS => Some(Self::Pins),
            _ => id(NODES)
                .map(Self::Node)
                .or_else(|| id(HELD).map(Self::Held))
                .or_else(|| id(DRAINS).map(Self::Drain)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_what_they_were_made_for() {
        let id = NodeId::from_bytes([7; 16]);
        assert_eq!(Key::parse(&node(id)), Some(Key::Node(id)));
        assert_eq!(Key::parse(&held(id)), Some(Key::Held(id)));
        assert_eq!(Key::parse(&drain(id)), Some(Key::Drain(id)));
        assert_eq!(Key::parse(LEADER), Some(Key::Leader));
        assert_eq!(Key::parse(PLAN), Some(Key::Plan));
        for key in
            [node(id), held(id), drain(id), LEADER.to_owned(), PLAN.to_owned(), PINS.to_owned()]
        {
            assert!(key.starts_with(PREFIX));
        }
        for other in ["cluster/", "cluster/nodes/x", "flare/owner"] {
            assert_eq!(Key::parse(other), None);
        }
    }
}
