//! Takes questions about this node; gives what it knows of itself.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use flare_core::model::duration::format_duration;

use super::answer::{Answer, json};
use crate::extract::NoQuery;
use crate::options::State;
use crate::problem::Problem;
use crate::wire::node::{About, LoopView, NodeStatus};
use crate::wire::unreadable::UnreadableRecordView;

/// The type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Which program this is.
#[utoipa::path(get, operation_id = "readAbout", path = "/", tag = "node",
    responses((status = 200, description = "Name, version and commit", body = About)))]
pub(crate) async fn about(Shared(state): Shared<State>, _: NoQuery) -> Answer {
    let options = state.options();
    let (version, commit) = (options.version.clone(), options.commit.clone());
    json(StatusCode::OK, &About { name: "flare", version, commit })
}

/// How this node is doing.
#[utoipa::path(get, operation_id = "readNodeStatus", path = "/status", tag = "node",
    responses((status = 200, description = "How it is doing", body = NodeStatus)))]
pub(crate) async fn status(Shared(state): Shared<State>, _: NoQuery) -> Answer {
    let (node, options) = (state.flare().node(), state.options());
    let now = node.now;
    let nodes = state.flare().cluster_seen().await.nodes.len();
    let up = now - node.started_at;
    let shown = |report: &flare_core::LoopReport| LoopView {
        name: report.name.to_string(),
        last_progress_at: report.last_progress_at.to_string(),
        working_since: report.working_since.map(|since| since.to_string()),
    };
    let status = NodeStatus {
        version: options.version.clone(),
        commit: options.commit.clone(),
        start_time_epoch_secs: node.started_at.unix_seconds(),
        current_time_epoch_secs: now.unix_seconds(),
        uptime: format_duration(std::time::Duration::from_secs(up.as_secs())),
        node: node.id.to_string(),
        running: node.running,
        standing: node.membership.as_str(),
        nodes: nodes as u64,
        consumers: node.consumers as u64,
        lanes: node.lanes as u64,
        puts: node.puts.into(),
        loops: node.loops.iter().map(shown).collect(),
        unreadable: node.unreadable.iter().map(UnreadableRecordView::from).collect(),
    };
    json(StatusCode::OK, &status)
}

/// What the host measures, for Prometheus; 404 if it measures nothing.
#[utoipa::path(get, operation_id = "readMetrics", path = "/metrics", tag = "node",
    responses(
        (status = 200, description = "Prometheus text", body = String, content_type = "text/plain"),
        (status = 404, description = "This host measures nothing"),
    ))]
pub(crate) async fn metrics(Shared(state): Shared<State>, _: NoQuery) -> Answer {
    let metrics = state.options().metrics.as_ref();
    let metrics = metrics.ok_or_else(|| Problem::not_found("this host measures nothing"))?;
    Ok(([(CONTENT_TYPE, PROMETHEUS)], metrics.0()).into_response())
}
