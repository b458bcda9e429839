//! What is known of a cluster, as JSON has it.

use flare_core::cluster::{self, ClusterView, Roles, SlotState};
use flare_core::model::{NodeId, Timestamp};
use flare_core::port::Page;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::page::Pagination;

/// How the cluster is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterHealth {
    status: Colour,
    /// How many nodes are connected.
    nodes: u64,
    /// How many of them hand over what they have, to leave.
    draining: u64,
    /// How many slots there are.
    slots: u64,
    /// How many slots nobody works.
    unassigned: u64,
    /// How many slots are on their way from one node to another.
    moving: u64,
    /// The node that decides who works what, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, format = "uuid")]
    leader: Option<NodeId>,
    /// The number of the plan that says who works what; each has a greater one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    plan: Option<u64>,
}

impl ClusterHealth {
    /// Of a cluster whose nodes hash lanes onto so many slots.
    pub(crate) fn of(view: &ClusterView, slots: u32) -> Self {
        let leaving =
            |node: &&cluster::NodeView| node.record.as_ref().is_some_and(|it| it.draining);
        Self {
            status: view.health.into(),
            nodes: view.nodes.len() as u64,
            draining: view.nodes.iter().filter(leaving).count() as u64,
            slots: view.plan.as_ref().map_or(u64::from(slots), |plan| plan.slots.len() as u64),
            // Before the first plan nobody works anything.
            unassigned: view.plan.as_ref().map_or(u64::from(slots), |_| view.unassigned as u64),
            moving: view.moving as u64,
            leader: view.leader,
            plan: view.plan.as_ref().map(|plan| plan.generation),
        }
    }
}

/// Green: everything is worked. Yellow: it is, and something is under way: slots move, a node
/// leaves, or there is no leader. Red: some of it is not worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Green,
    Yellow,
    Red,
}

impl From<cluster::Health> for Colour {
    fn from(health: cluster::Health) -> Self {
        match health {
            cluster::Health::Green => Self::Green,
            cluster::Health::Yellow => Self::Yellow,
            cluster::Health::Red => Self::Red,
        }
    }
}

/// A page of nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeList {
    pagination: Pagination,
    nodes: Vec<NodeShape>,
}

impl NodeList {
    /// A page of a cluster's nodes; `me` is the one that answers, if it is one of them.
    pub(crate) fn of(view: &ClusterView, me: Option<NodeId>, page: Page) -> Self {
        let nodes = view.nodes.iter();
        let shown = |node: &cluster::NodeView| NodeShape::of(node, view.leader, me);
        let total = view.nodes.len() as u64;
        Self {
            pagination: Pagination::new(page, total),
            nodes: part(nodes, page).map(shown).collect(),
        }
    }
}

/// One node of the cluster. A node of a newer version may not be understood: then only what others
/// know of it is shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Node)]
struct NodeShape {
    /// What it is known by; another one after every start.
    #[schema(value_type = String, format = "uuid")]
    id: NodeId,
    /// What it is called; need not be unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// The version of Flare it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<String>,
    /// Since when it is known by that id, by its own clock.
    #[schema(format = DateTime)]
    started_at: String,
    /// What it may be used for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    roles: Option<Vec<Role>>,
    /// Its part of the slots, in relation to the others' weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    weight: Option<u32>,
    /// How much of that it does without for now, as it has too much to do, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    shed_percent: Option<u32>,
    /// Whether it hands over what it has, to leave.
    draining: bool,
    /// Whether it decides who works what.
    leader: bool,
    /// Whether it is the node that answers.
    local: bool,
    /// How many slots it works.
    slots: u64,
    /// How busy it is, rounded, as it last said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    load: Option<Load>,
}

impl NodeShape {
    fn of(node: &cluster::NodeView, leader: Option<NodeId>, me: Option<NodeId>) -> Self {
        let record = node.record.as_deref();
        Self {
            id: node.id,
            name: record.map(|record| record.name.clone()),
            version: record.map(|record| record.version.clone()),
            started_at: made_at(node.id).to_string(),
            roles: record.map(|record| roles(record.roles)),
            weight: record.map(|record| record.weight),
            shed_percent: record.map(|record| record.shed_percent),
            draining: record.is_some_and(|record| record.draining),
            leader: leader == Some(node.id),
            local: me == Some(node.id),
            slots: node.slots as u64,
            load: record.map(|record| Load {
                lanes: record.load.lanes,
                consumers: record.load.consumers,
                in_flight: record.load.in_flight,
                busy_percent: record.load.busy_percent,
            }),
        }
    }
}

/// What a node may be used for: to decide who works what, to work, to take documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Role {
    Lead,
    Work,
    Ingest,
}

fn roles(roles: Roles) -> Vec<Role> {
    let named =
        [(Role::Lead, roles.leads), (Role::Work, roles.works), (Role::Ingest, roles.ingests)];
    named.into_iter().filter(|(_, has)| *has).map(|(role, _)| role).collect()
}

/// How busy a node is, in rounded figures but for the consumers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Load {
    /// Lanes it works.
    lanes: u64,
    /// Consumers it works, exactly.
    consumers: u64,
    /// Requests in flight.
    in_flight: u64,
    /// How busy it is, 100 being all it can do.
    busy_percent: u64,
}

/// A page of slots.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SlotList {
    pagination: Pagination,
    slots: Vec<SlotShape>,
}

impl SlotList {
    /// A page of a cluster's slots; before the first plan, of those its nodes hash lanes onto.
    pub(crate) fn of(view: &ClusterView, slots: u32, page: Page) -> Self {
        let planned = view.plan.as_ref().and_then(|plan| u32::try_from(plan.slots.len()).ok());
        let total = planned.unwrap_or(slots);
        Self {
            pagination: Pagination::new(page, u64::from(total)),
            slots: part(0..total, page).map(|slot| SlotShape::of(view, slot)).collect(),
        }
    }
}

/// One slot: lanes are hashed onto slots, and slots are what nodes have.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Slot)]
pub(crate) struct SlotShape {
    /// Its number.
    slot: u32,
    state: SlotWord,
    /// Who works it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, format = "uuid")]
    node: Option<NodeId>,
    /// Who is to work it next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, format = "uuid")]
    to: Option<NodeId>,
    /// Under which epoch; whoever has it next has a greater one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    epoch: Option<u64>,
    /// The name of the node that an operator gave it to, for as long as that one is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pin: Option<String>,
}

impl SlotShape {
    /// One slot of a cluster, as far as there is a plan.
    pub(crate) fn of(view: &ClusterView, slot: u32) -> Self {
        let pin = view.pins.get(&slot).cloned();
        let state = SlotWord::Free;
        let free = Self { slot, state, node: None, to: None, epoch: None, pin: pin.clone() };
        // Whoever is gone works nothing, even if no leader has said so yet.
        let (Some(node), Some(state)) = (view.worker(slot), view.slot(slot)) else { return free };
        let epoch = state.worker().map(|(_, takeover)| takeover.epoch.get());
        let (state, to) = match state {
            SlotState::Releasing { to, .. } => (SlotWord::Releasing, Some(*to)),
            _ => (SlotWord::Owned, None),
        };
        Self { slot, state, node: Some(node), to, epoch, pin }
    }
}

/// Owned: a node works it. Releasing: it still does, and is to finish. Free: nobody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SlotState)]
#[serde(rename_all = "lowercase")]
enum SlotWord {
    Owned,
    Releasing,
    Free,
}

/// A node that was asked to leave.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Drained {
    /// Which one.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) draining: NodeId,
}

/// The path of a node.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct NodePath {
    /// The id of the node.
    #[param(format = "uuid")]
    pub(crate) id: String,
}

/// What a page shows of a list.
fn part<I: Iterator>(items: I, page: Page) -> impl Iterator<Item = I::Item> {
    items.skip(usize::try_from(page.offset).unwrap_or(usize::MAX)).take(page.limit as usize)
}

/// When an id was made: a UUIDv7 begins with its time in milliseconds.
fn made_at(id: NodeId) -> Timestamp {
    let [a, b, c, d, e, f, ..] = *id.as_bytes();
    Timestamp::from_unix_millis(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}
