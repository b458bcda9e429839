//! Takes what a node knows of itself; gives it as JSON has it.

use flare_core::PutRates;
use serde::Serialize;
use utoipa::ToSchema;

use super::rates::WindowRatesView;
use super::unreadable::UnreadableRecordView;

/// Which program this is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct About {
    /// Always `flare`.
    pub(crate) name: &'static str,
    /// The version of the program.
    pub(crate) version: String,
    /// The commit it was built from, if it knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) commit: Option<String>,
}

/// How this node is doing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeStatus {
    /// The version of the program.
    pub(crate) version: String,
    /// The commit it was built from, if it knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) commit: Option<String>,
    /// When it was started, in seconds since 1970.
    pub(crate) start_time_epoch_secs: i64,
    /// What time it is here, in seconds since 1970.
    pub(crate) current_time_epoch_secs: i64,
    /// How long it has been up, such as `90s`.
    pub(crate) uptime: String,
    /// The id of this node.
    #[schema(format = "uuid")]
    pub(crate) node: String,
    /// Whether its runtime runs.
    pub(crate) running: bool,
    /// How it stands in its cluster: `outside`, `member`, `leaving` or `left`.
    pub(crate) standing: &'static str,
    /// How many nodes are connected, as far as this one sees.
    pub(crate) nodes: u64,
    /// How many consumers it works.
    pub(crate) consumers: u64,
    /// How many lanes it works.
    pub(crate) lanes: u64,
    /// The puts and deletes that it takes, a second.
    pub(crate) puts: PutRatesView,
    /// Its loops, each with its last progress.
    pub(crate) loops: Vec<LoopView>,
    /// The stored records that it met of late and could not read. Nothing is done for them here, and
    /// everything for all others.
    pub(crate) unreadable: Vec<UnreadableRecordView>,
}

/// The puts and deletes that a node takes, a second.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PutRates)]
pub(crate) struct PutRatesView {
    /// Those that were answered, whatever they changed.
    accepted: WindowRatesView,
    /// Those of them that a client is told of.
    changed: WindowRatesView,
}

impl From<PutRates> for PutRatesView {
    fn from(rates: PutRates) -> Self {
        Self { accepted: rates.accepted.into(), changed: rates.changed.into() }
    }
}

/// How one loop is doing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Loop)]
pub(crate) struct LoopView {
    /// Which loop.
    pub(crate) name: String,
    /// When it last finished a turn.
    #[schema(format = DateTime)]
    pub(crate) last_progress_at: String,
    /// Since when it is at the turn it is at now, if at one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub(crate) working_since: Option<String>,
}

/// Whether this node can be relied on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`: anything else is an error.
    pub(crate) status: &'static str,
}
