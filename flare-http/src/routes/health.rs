//! Takes the question whether this node is well; gives yes, or 503 and what is wrong.

use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use crate::extract::NoQuery;
use crate::options::State;
use crate::problem::Problem;
use crate::wire::node::Health;

/// How long a loop may be at one turn before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Whether the process answers at all.
#[utoipa::path(get, operation_id = "isLive", path = "/health/live", tag = "node", security(()),
    responses((status = 200, description = "It does", body = Health)))]
pub(crate) async fn live(_: NoQuery) -> Answer {
    json(StatusCode::OK, &Health { status: "ok" })
}

/// Whether the node does its work: its runtime runs, and no loop with work has stood for 30 s.
#[utoipa::path(get, operation_id = "isReady", path = "/health/ready", tag = "node", security(()),
    responses(
        (status = 200, description = "It does", body = Health),
        (status = 503, description = "It does not; the detail says why"),
    ))]
pub(crate) async fn ready(Shared(state): Shared<State>, _: NoQuery) -> Answer {
    match why_not(&state) {
        None => json(StatusCode::OK, &Health { status: "ok" }),
        Some(detail) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE)
            .detail(detail)
            .retry_after(Duration::from_secs(1))),
    }
}

fn why_not(state: &State) -> Option<String> {
    let node = state.flare().node();
    if !node.running {
        return Some("the runtime does not run".to_owned());
    }
    let stuck: Vec<String> = node.stuck(STUCK_AFTER).map(|it| it.name.to_string()).collect();
    let detail = || format!("no progress for {STUCK_AFTER:?}: {}", stuck.join(", "));
    (!stuck.is_empty()).then(detail)
}
