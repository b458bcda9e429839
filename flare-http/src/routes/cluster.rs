//! Takes questions about the cluster; gives what the coordination store says, the same from every
//! node. Where there is no cluster, this node is all of it.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use flare_core::cluster::{ClusterHandle, ClusterView};

use super::answer::{Answer, json};
use crate::extract::{NoQuery, NodeOnly, Operation, Paging};
use crate::options::State;
use crate::problem::Problem;
use crate::wire::cluster::{ClusterHealth, Drained, NodeList, NodePath, SlotList};
use crate::wire::operation::Nothing;
use crate::wire::page::PageQuery;

/// How the cluster is doing: red while something is not worked.
#[utoipa::path(get, operation_id = "readClusterHealth", path = "/cluster/health", tag = "cluster",
    responses((status = 200, description = "How it is doing", body = ClusterHealth)))]
pub(crate) async fn health(Shared(state): Shared<State>, _: NoQuery) -> Answer {
    let node = state.flare().node();
    let health = match read(&state).await? {
        Some(view) => ClusterHealth::of(&view, node.slots),
        None => ClusterHealth::alone(&node),
    };
    json(StatusCode::OK, &health)
}

/// Lists the nodes of the cluster, in the order in which they started.
#[utoipa::path(get, operation_id = "listNodes", path = "/cluster/nodes", tag = "cluster", params(PageQuery),
    responses((status = 200, description = "A page of them", body = NodeList)))]
pub(crate) async fn nodes(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    let me = state.flare().member().and_then(ClusterHandle::node);
    let nodes = match read(&state).await? {
        Some(view) => NodeList::of(&view, me, page),
        None => NodeList::alone(&state.flare().node(), page),
    };
    json(StatusCode::OK, &nodes)
}

/// Lists the slots by number, each with who works it.
#[utoipa::path(get, operation_id = "listSlots", path = "/cluster/slots", tag = "cluster", params(PageQuery),
    responses((status = 200, description = "A page of them", body = SlotList)))]
pub(crate) async fn slots(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    let node = state.flare().node();
    let slots = match read(&state).await? {
        Some(view) => SlotList::of(&view, node.slots, page),
        None => SlotList::alone(&node, page),
    };
    json(StatusCode::OK, &slots)
}

/// Asks a node to hand its slots over and leave the cluster. Answered once that is stored, before it
/// is done. Its process goes on answering, and works nothing until it is started again; once it has
/// left it is not there any more: 404.
#[utoipa::path(post, operation_id = "drainNode", path = "/cluster/nodes/{id}/drain", tag = "cluster",
    params(NodePath), request_body = Nothing,
    responses(
        (status = 202, description = "It was asked to", body = Drained),
        (status = 409, description = "There is no cluster, and so nobody to hand over to"),
    ))]
pub(crate) async fn drain(
    Shared(state): Shared<State>,
    NodeOnly(id): NodeOnly,
    _: NoQuery,
    body: Operation,
) -> Answer {
    body.empty()?;
    if state.flare().member().is_none() {
        return Err(if id == state.flare().node().id {
            let detail = "this node is part of no cluster, so nobody could take its slots over";
            Problem::new(StatusCode::CONFLICT).detail(detail)
        } else {
            Problem::not_found(format!("there is no node {id}"))
        });
    }
    state.flare().drain_node(id).await?;
    json(StatusCode::ACCEPTED, &Drained { draining: id })
}

/// The cluster as its store has it now, if there is one.
async fn read(state: &State) -> Result<Option<ClusterView>, Problem> {
    match state.flare().member() {
        Some(_) => Ok(Some(state.flare().cluster().await?)),
        None => Ok(None),
    }
}
