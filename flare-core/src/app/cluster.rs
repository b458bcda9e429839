//! Takes questions about the cluster a Flare is part of; gives answers from the coordination store,
//! the same from every node.

use tracing::debug;

use super::flare::Flare;
use crate::cluster::{ClusterHandle, ClusterView};
use crate::error::{Error, ErrorKind, Result};
use crate::model::NodeId;

impl Flare {
    /// How the cluster is, who is in it and who works which slot: the same answer from every node,
    /// whether or not its runtime runs. Not found, if this Flare is part of no cluster.
    pub async fn cluster(&self) -> Result<ClusterView> {
        self.membership("cluster")?.read().await
    }

    /// The cluster as this node sees it: while it takes part it follows all changes, so that nothing
    /// has to be asked of the store. Else the store is asked and, where that fails, what was last
    /// seen is the answer. Nothing, if this Flare is part of no cluster.
    pub async fn cluster_seen(&self) -> Option<ClusterView> {
        let handle = self.cluster_handle()?;
        let seen = handle.view();
        if handle.node().is_some() && !seen.nodes.is_empty() {
            return Some(seen);
        }
        Some(handle.read().await.unwrap_or_else(|error| {
            debug!(?error, "the cluster cannot be read, its last state is shown");
            seen
        }))
    }

    /// Asks a node of the cluster to hand all its slots over and leave; returns once that is
    /// stored, which is before it is done. That node goes on accepting documents, and works no
    /// lanes until it is started again.
    pub async fn drain_node(&self, node: NodeId) -> Result<()> {
        self.membership("drain_node")?.drain_node(node).await
    }

    /// This node's part in the cluster: its incarnation, weight and load. Nothing, if this Flare is
    /// part of no cluster.
    pub fn member(&self) -> Option<&ClusterHandle> {
        self.cluster_handle()
    }

    pub(super) fn membership(&self, operation: &'static str) -> Result<&ClusterHandle> {
        self.cluster_handle().ok_or_else(|| {
            let error = Error::new(ErrorKind::NotFound, operation);
            error.detail("this Flare is part of no cluster: set one on its builder")
        })
    }
}
