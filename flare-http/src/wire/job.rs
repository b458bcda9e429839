//! Stored jobs, as JSON has them.

use flare_core::JobReport;
use flare_core::model::{JobId, JobKind, NodeId};
use flare_core::port::{Listing, Page};
use serde::Serialize;
use utoipa::ToSchema;

use super::page::Pagination;
use super::report::ProgressView;
use super::unreadable::{Listed, ListedJob};

/// A page of jobs, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedJob>)]
    jobs: Vec<Listed<JobView>>,
}

impl JobList {
    pub(crate) fn new(page: Page, listing: Listing<JobReport>) -> Self {
        let jobs = listing.items.into_iter().map(|job| (job.id.to_string(), JobView::from(job)));
        let jobs = Listed::page(jobs, &listing.unreadable);
        Self { pagination: Pagination::new(page, listing.total), jobs }
    }
}

/// Long work that is stored, so that it goes on whatever crashes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Job)]
pub(crate) struct JobView {
    /// What it is known by.
    #[schema(value_type = String, format = "uuid")]
    id: JobId,
    /// What kind of work: `backfill`, `resync`, `remove-resource`, `remove-subscription`, `queue`, or what comes
    /// round for ever: `expire` and `reconcile`.
    #[schema(value_type = String)]
    kind: JobKind,
    /// What it works on: the id of a subscription or resource, mostly.
    subject: String,
    /// When it was asked for.
    #[schema(format = DateTime)]
    since: String,
    /// When it is gone on with; while a node is at it, when another one would take it over.
    #[schema(format = DateTime)]
    due: String,
    /// How far it has come, of a backfill or resync.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    progress: Option<ProgressView>,
    /// The node that is at it, if it is the one that answers: others do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, format = "uuid")]
    node: Option<NodeId>,
}

impl From<JobReport> for JobView {
    fn from(job: JobReport) -> Self {
        Self {
            id: job.id,
            kind: job.kind,
            subject: job.subject,
            since: job.since.to_string(),
            due: job.due.to_string(),
            progress: job.progress.map(ProgressView::from),
            node: job.node,
        }
    }
}
