//! Questions about the cluster, answered by the coordination store: the same from every node.

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use crate::extract::{Acting, NoQuery, NodeOnly, Operation, Paging};
use crate::options::State;
use crate::problem::Problem;
use crate::wire::cluster::{ClusterHealth, Drained, NodeList, NodePath, SlotList};
use crate::wire::operation::Nothing;
use crate::wire::page::PageQuery;

/// How the cluster is doing: red while something is not worked.
#[utoipa::path(get, operation_id = "readClusterHealth", path = "/cluster/health", tag = "cluster",
    responses((status = 200, description = "How it is doing", body = ClusterHealth)))]
pub(crate) async fn health(Shared(state): Shared<State>, _: NoQuery) -> Answer {
    let view = state.flare().cluster().await?;
    json(StatusCode::OK, &ClusterHealth::of(&view, state.flare().node().slots))
}

/// Lists the nodes of the cluster, in the order in which they started.
#[utoipa::path(get, operation_id = "listNodes", path = "/cluster/nodes", tag = "cluster", params(PageQuery),
    responses((status = 200, description = "A page of them", body = NodeList)))]
pub(crate) async fn nodes(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    let view = state.flare().cluster().await?;
    json(StatusCode::OK, &NodeList::of(&view, state.flare().member().node(), page))
}

/// Lists the slots by number, each with who works it.
#[utoipa::path(get, operation_id = "listSlots", path = "/cluster/slots", tag = "cluster", params(PageQuery),
    responses((status = 200, description = "A page of them", body = SlotList)))]
pub(crate) async fn slots(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    let view = state.flare().cluster().await?;
    json(StatusCode::OK, &SlotList::of(&view, state.flare().node().slots, page))
}

/// Asks a node to hand its slots over and leave the cluster. Answered once that is stored, before it
/// is done. Its process goes on answering, and works nothing until it is started again; once it has
/// left it is not there any more: 404.
#[utoipa::path(post, operation_id = "drainNode", path = "/cluster/nodes/{id}/drain", tag = "cluster",
    params(NodePath), request_body = Nothing,
    responses(
        (status = 202, description = "It was asked to", body = Drained),
        (status = 409, description = "It is the only node, and so nobody could take its slots over"),
    ))]
pub(crate) async fn drain(
    Acting(state): Acting,
    NodeOnly(id): NodeOnly,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    let view = state.flare().cluster().await?;
    let is_there = view.nodes.iter().any(|node| node.id == id);
    if is_there && !view.has_worker_beside(id) {
        let detail = "it is the only node that works, so nobody could take its slots over";
        return Err(Problem::new(StatusCode::CONFLICT).detail(detail));
    }
    state.flare().drain_node(id).await?;
    json(StatusCode::ACCEPTED, &Drained { draining: id })
}
