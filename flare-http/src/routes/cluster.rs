//! Takes questions about the cluster; gives the answers of a cluster of one.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use flare_core::port::Page;

use super::answer::{Answer, json};
use crate::extract::{NoQuery, Paging};
use crate::options::State;
use crate::wire::node::{ClusterHealth, Colour, NodeList, NodeView};
use crate::wire::page::{PageQuery, Pagination};

/// How the cluster is doing: red while nobody works.
#[utoipa::path(get, operation_id = "readClusterHealth", path = "/cluster/health", tag = "cluster",
    responses((status = 200, description = "How it is doing", body = ClusterHealth)))]
pub(crate) async fn health(Shared(state): Shared<State>, _: NoQuery) -> Answer {
    let status = if state.flare().node().running { Colour::Green } else { Colour::Red };
    json(StatusCode::OK, &ClusterHealth { status, nodes: 1, unassigned: 0 })
}

/// Lists the nodes of the cluster.
#[utoipa::path(get, operation_id = "listNodes", path = "/cluster/nodes", tag = "cluster", params(PageQuery),
    responses((status = 200, description = "A page of them", body = NodeList)))]
pub(crate) async fn nodes(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    let node = state.flare().node();
    let only = NodeView {
        id: node.id.to_string(),
        started_at: node.started_at.to_string(),
        running: node.running,
        lanes: node.lanes as u64,
    };
    let Page { offset, .. } = page;
    let nodes = Some(only).filter(|_| offset == 0).into_iter().collect();
    json(StatusCode::OK, &NodeList { pagination: Pagination::new(page, 1), nodes })
}
