//! Takes questions about the cluster a Flare is part of; gives answers from the coordination store,
//! the same from every node.

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

    /// Asks a node of the cluster to hand all its slots over and leave; returns once that is
    /// stored, which is before it is done. That node goes on accepting documents, and works no
    /// lanes until it is started again.
    pub async fn drain_node(&self, node: &NodeId) -> Result<()> {
        self.membership("drain_node")?.drain_node(*node).await
    }

    /// This node's part in the cluster: its incarnation, weight and load. Nothing, if this Flare is
    /// part of no cluster.
    pub fn member(&self) -> Option<&ClusterHandle> {
        self.cluster_handle()
    }

    fn membership(&self, operation: &'static str) -> Result<&ClusterHandle> {
        self.cluster_handle().ok_or_else(|| {
            let error = Error::new(ErrorKind::NotFound, operation);
            error.detail("this Flare is part of no cluster: set one on its builder")
        })
    }
}
