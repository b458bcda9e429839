//! Takes messages that became no document; gives the list of them, and which to try again.

use flare_core::RetriedRejects;
use flare_core::model::{Reject, RejectId};
use flare_core::port::{Listing, Page};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::page::Pagination;
use super::unreadable::{Listed, ListedReject};
use super::word::{RejectReasonWord, Word};
use crate::problem::Problem;

/// A page of rejects, oldest rejection first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RejectList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedReject>)]
    rejects: Vec<Listed<RejectView>>,
}

impl RejectList {
    pub(crate) fn new(page: Page, listing: Listing<Reject>) -> Self {
        let readable = listing.items.into_iter().map(|it| Listed::Readable(it.into()));
        // When they were rejected is not known, so they come last.
        let others = listing.unreadable.iter().map(|it| Listed::Unreadable(it.into()));
        let rejects = readable.chain(others).collect();
        Self { pagination: Pagination::new(page, listing.total), rejects }
    }
}

/// A message that became no document, or not all that it says.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Reject)]
pub(crate) struct RejectView {
    /// What it is tried again by.
    #[schema(value_type = String, format = "uuid")]
    id: RejectId,
    /// What the broker calls the message.
    message: String,
    reason: RejectReasonWord,
    /// Where in the message, a JSON Pointer; nowhere in particular unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pointer: Option<String>,
    /// What is wrong there.
    detail: String,
    /// How the message begins.
    excerpt: String,
    /// When the broker got it, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    sent_at: Option<String>,
    #[schema(format = DateTime)]
    rejected_at: String,
    /// Whether all of it is kept, so that it can be tried again.
    kept: bool,
}

impl From<Reject> for RejectView {
    fn from(reject: Reject) -> Self {
        Self {
            id: reject.id,
            message: reject.message,
            reason: Word(reject.reason),
            pointer: Some(reject.pointer).filter(|pointer| !pointer.is_empty()),
            detail: reject.detail,
            excerpt: reject.excerpt,
            sent_at: reject.sent_at.map(|at| at.to_string()),
            rejected_at: reject.rejected_at.to_string(),
            kept: reject.body.is_some(),
        }
    }
}

/// Which rejects to try again; all, if it does not say.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RetryRejects, example = json!({}))]
pub(crate) struct RetryInput {
    /// Their ids. If one of them is not listed, none is tried.
    rejects: Option<Vec<String>>,
}

impl RetryInput {
    /// The ids, if some are named. What is not an id is the id of nothing.
    pub(crate) fn ids(self) -> Result<Option<Vec<RejectId>>, Problem> {
        let unknown = |id: &str| Problem::not_found(format!("there is no reject {id}"));
        let ids = self.rejects.map(|ids| {
            ids.iter().map(|id| id.parse().map_err(|_| unknown(id))).collect::<Result<_, _>>()
        });
        ids.transpose()
    }
}

/// What became of rejects that were tried again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RetriedRejects)]
pub(crate) struct RetriedView {
    /// How many became documents; they are listed no more.
    stored: u64,
    /// How many were rejected again, or are too large to have been kept whole.
    rejected: u64,
}

impl From<RetriedRejects> for RetriedView {
    fn from(retried: RetriedRejects) -> Self {
        Self { stored: retried.stored, rejected: retried.rejected }
    }
}
