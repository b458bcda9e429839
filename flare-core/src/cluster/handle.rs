//! Takes what is asked of a node, or told to it, while it runs; gives answers from what it has read, and
//! passes on the rest.

use std::sync::Arc;

use tokio::sync::watch;

use super::context::NodeContext;
use super::keys;
use super::mirror::View;
use super::record::{NodeLoad, Roles};
use super::registry::Facts;
use super::view::ClusterView;
use crate::error::{Error, ErrorKind, Result};
use crate::model::NodeId;
use crate::port::Write;

/// What a node can be asked and told while it runs. Clones are the same node's.
#[derive(Debug, Clone)]
pub struct ClusterHandle {
    context: Arc<NodeContext>,
    facts: watch::Sender<Facts>,
    view: View,
    node: watch::Receiver<Option<NodeId>>,
}

/// How a node stands in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Membership {
    /// It is not registered: not yet, or it has lost its registration and is trying again.
    Outside,
    /// It is registered.
    Member,
    /// It is registered, and hands over what it has.
    Leaving,
    /// It has left, or ended: it works nothing until it is started again.
    Left,
}

impl Membership {
    /// The membership in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Member => "member",
            Self::Leaving => "leaving",
            Self::Left => "left",
        }
    }
}

impl ClusterHandle {
    pub(crate) fn new(
        context: Arc<NodeContext>,
        facts: watch::Sender<Facts>,
        view: View,
        node: watch::Receiver<Option<NodeId>>,
    ) -> Self {
        Self { context, facts, view, node }
    }

    pub(super) fn context(&self) -> &NodeContext {
        &self.context
    }

    /// Under which incarnation the node is registered, while it is.
    pub fn node(&self) -> Option<NodeId> {
        *self.node.borrow()
    }

    /// How the node stands in the cluster.
    pub fn membership(&self) -> Membership {
        // A member keeps the other end.
        if self.node.has_changed().is_err() {
            return Membership::Left;
        }
        match (self.node(), self.facts.borrow().draining) {
            (None, _) => Membership::Outside,
            (Some(_), false) => Membership::Member,
            (Some(_), true) => Membership::Leaving,
        }
    }

    /// Changes the node's part of the slots. Less of it sheds slots slowly, 0 all of them to nodes that
    /// have a weight. What the node
    /// sheds by itself while it is overloaded comes off this.
    pub fn set_weight(&self, weight: u32) {
        self.change(|facts| facts.weight = weight);
    }

    /// Says how busy the node is.
    pub fn set_load(&self, load: NodeLoad) {
        self.change(|facts| facts.load = load);
    }

    /// Has the node hand everything over and leave, as if its run had been asked to stop.
    pub fn drain(&self) {
        self.change(|facts| facts.draining = true);
    }

    /// Asks any node of the cluster to hand everything over and leave; returns once that is stored.
    pub async fn drain_node(&self, node: NodeId) -> Result<()> {
        let (context, operation) = (&self.context, "drain_node");
        let found = context.timed("get", context.lease.get(&keys::node(node))).await?;
        let Some(lease) = found.and_then(|entry| entry.lease) else {
            return Err(
                Error::new(ErrorKind::NotFound, operation).with_detail("there is no such node")
            );
        };
        // Bound to that node's lease, so that nothing is left once it is gone.
        let write = Write::new(keys::drain(node), "").lease(lease);
        context.timed("write", context.lease.write(write)).await.map(drop)
    }

    /// The cluster as its store has it now.
    pub async fn read(&self) -> Result<ClusterView> {
        let context = &self.context;
        context.timed("cluster", ClusterView::read(&*context.lease)).await
    }

    /// Announces something to all nodes that take part, this one among them.
    pub(crate) async fn announce(&self, said: String) -> Result<()> {
        let write = Write::new(keys::FEED, said);
        self.context.timed("announce", self.context.lease.write(write)).await.map(drop)
    }

    /// What the node may be used for.
    pub fn roles(&self) -> Roles {
        self.context.settings.roles
    }

    /// The cluster as far as this node has read.
    pub fn view(&self) -> ClusterView {
        ClusterView::of(&self.view.borrow())
    }

    fn change(&self, change: impl FnOnce(&mut Facts)) {
        self.facts.send_if_modified(|facts| {
            let before = *facts;
            change(facts);
            *facts != before
        });
    }
}
