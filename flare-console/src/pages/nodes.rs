//! The nodes of the cluster: who is there, what each works, and having one leave.

use askama::Template;
use flare_core::cluster::{ClusterView, NodeView};
use flare_core::model::{NodeId, Timestamp};

use super::confirm::Confirm;
use super::overview::{health, why};
use crate::ask::{Ask, Named, page, see};
use crate::frame::Frame;
use crate::refusal::{Answer, Refusal};
use crate::show::{Now, State, many, percent};

#[derive(Template)]
#[template(path = "pages/nodes.html")]
struct Nodes {
    frame: Frame,
    now: Now,
    health: State,
    why: String,
    nodes: Vec<NodeLine>,
    slots: u64,
    pins: u64,
}

struct NodeLine {
    node: NodeView,
    name: String,
    state: State,
    started_at: Timestamp,
    leads: bool,
    answers: bool,
    share: u64,
}

/// The list, in the order in which they started.
pub(crate) async fn list(ask: Ask) -> Answer {
    let cluster = ask.flare().cluster().await?;
    let me = ask.flare().member().node();
    let slots = slots(&ask, &cluster);
    let line = |node: &NodeView| NodeLine {
        name: name(node),
        state: state(node),
        started_at: started_at(node.id),
        leads: cluster.leader == Some(node.id),
        answers: me == Some(node.id),
        share: percent(node.slots as u64, slots),
        node: node.clone(),
    };
    page(&Nodes {
        now: ask.now(),
        health: health(cluster.health),
        why: why(&cluster),
        nodes: cluster.nodes.iter().map(line).collect(),
        pins: cluster.pins.len() as u64,
        frame: ask.frame,
        slots,
    })
}

/// How many slots there are, also before the first plan.
pub(crate) fn slots(ask: &Ask, cluster: &ClusterView) -> u64 {
    let hashed = u64::from(ask.flare().node().slots);
    cluster.plan.as_ref().map_or(hashed, |plan| plan.slots.len() as u64)
}

/// What a node is called; one of a version that is not understood has its id.
pub(crate) fn name(node: &NodeView) -> String {
    node.record.as_ref().map_or_else(|| node.id.to_string(), |record| record.name.clone())
}

fn state(node: &NodeView) -> State {
    match &node.record {
        None => State::plain("not understood"),
        Some(record) if record.draining => State::fair("leaving"),
        Some(record) if !record.roles.works => State::plain("takes documents"),
        Some(record) if record.load.busy_percent >= 100 => State::bad("overloaded"),
        Some(_) => State::good("works"),
    }
}

/// When an id was made: it begins with its time in milliseconds.
fn started_at(id: NodeId) -> Timestamp {
    let [a, b, c, d, e, f, ..] = *id.as_bytes();
    Timestamp::from_unix_millis(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// Asks before a node leaves.
pub(crate) async fn confirm_drain(id: Named, ask: Ask) -> Answer {
    let id: NodeId = id.id("node")?;
    let cluster = ask.flare().cluster().await?;
    let node = cluster.nodes.iter().find(|node| node.id == id);
    let node = node.ok_or_else(|| Refusal::not_found("node", &id.to_string()))?;
    let impossible = match node.record.as_ref().is_some_and(|record| record.draining) {
        true => Some("It is leaving already.".to_owned()),
        false => alone(&cluster, id),
    };
    let asked = Confirm::new(ask.frame, "Drain this node?", name(node), "Drain the node", "../../nodes")
        .effect(format!(
            "It finishes what is in flight and hands its {} over to the other nodes; nothing is lost.",
            many(node.slots as u64, "slot")
        ))
        .effect("Its process goes on answering and taking documents, and works nothing until it is started again.")
        .destroying()
        .unless(impossible);
    page(&asked)
}

/// Why it cannot leave, if it is the only one.
fn alone(cluster: &ClusterView, id: NodeId) -> Option<String> {
    let alone = !cluster.has_worker_beside(id);
    alone.then(|| {
        "It is the only node that works, so no other could take its slots over.".to_owned()
    })
}

/// Asks it to.
pub(crate) async fn drain(id: Named, ask: Ask) -> Answer {
    let id: NodeId = id.id("node")?;
    let cluster = ask.flare().cluster().await?;
    if let Some(why) = alone(&cluster, id).filter(|_| cluster.nodes.iter().any(|it| it.id == id)) {
        return Err(Refusal::new(axum::http::StatusCode::CONFLICT, why));
    }
    ask.flare().drain_node(id).await?;
    Ok(see("../../nodes?done=draining"))
}
