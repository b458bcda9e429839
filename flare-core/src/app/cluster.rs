//! Questions about the cluster of a Flare's stores, answered by the coordination store: the same from
//! every node.

use tracing::debug;

use super::flare::Flare;
use crate::cluster::ClusterView;
use crate::error::Result;
use crate::model::{AuditAction, AuditSubject, NodeId};

impl Flare {
    /// How the cluster is, who is in it and who works which slot: the same answer from every node,
    /// whether or not its runtime runs.
    pub async fn cluster(&self) -> Result<ClusterView> {
        self.member().read().await
    }

    /// The cluster as this node sees it: while it takes part it follows all changes, so that nothing
    /// has to be asked of the store. Else the store is asked and, where that fails, what was last
    /// seen is the answer.
    pub async fn cluster_seen(&self) -> ClusterView {
        let handle = self.member();
        let seen = handle.view();
        if handle.node().is_some() && !seen.nodes.is_empty() {
            return seen;
        }
        handle.read().await.unwrap_or_else(|error| {
            debug!(?error, "the cluster cannot be read, its last state is shown");
            seen
        })
    }

    /// Asks a node of the cluster to hand all its slots over and leave; returns once that is
    /// stored, which is before it is done. That node goes on accepting documents, and works no
    /// lanes until it is started again.
    pub async fn drain_node(&self, node: NodeId) -> Result<()> {
        self.member().drain_node(node).await?;
        self.tell(AuditAction::Drained, AuditSubject::node(node), "");
        Ok(())
    }
}
