//! Questions about what is done for long, and what was done: the same from every node.

use axum::extract::State as Shared;
use axum::http::StatusCode;

use super::answer::{Answer, json};
use crate::extract::{LogPaging, Paging};
use crate::options::State;
use crate::wire::audit::{LogList, LogQuery};
use crate::wire::job::JobList;
use crate::wire::page::PageQuery;

/// Lists the long work that is stored, oldest first: backfills and resyncs, for a day after they are done too,
/// removals, and what comes round for ever.
#[utoipa::path(get, operation_id = "listJobs", path = "/jobs", tag = "cluster", params(PageQuery),
    responses((status = 200, description = "A page of it", body = JobList)))]
pub(crate) async fn jobs(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    json(StatusCode::OK, &JobList::new(page, state.flare().jobs(page).await?))
}

/// Lists what operators and nodes did, newest first: all of it, or what was done to one thing.
#[utoipa::path(get, operation_id = "readLog", path = "/log", tag = "cluster", params(PageQuery, LogQuery),
    responses((status = 200, description = "A page of it", body = LogList)))]
pub(crate) async fn log(Shared(state): Shared<State>, asked: LogPaging) -> Answer {
    let listing = state.flare().audit_log(asked.subject.as_ref(), asked.page).await?;
    json(StatusCode::OK, &LogList::new(asked.page, listing))
}
