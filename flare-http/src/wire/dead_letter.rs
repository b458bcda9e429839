//! Takes notifications that were given up; gives the list of them, and what to replay.

use flare_core::model::{DeadLetterId, DeadNotification};
use flare_core::port::{Listing, Page};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::page::Pagination;
use super::revision::RevisionView;
use super::word::{ActionWord, ReasonWord, Word};
use crate::problem::Problem;

/// A page of dead letters, oldest death first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeadLetterList {
    pagination: Pagination,
    dead_letters: Vec<DeadLetterView>,
}

impl DeadLetterList {
    pub(crate) fn new(page: Page, listing: Listing<DeadNotification>) -> Self {
        let dead_letters = listing.items.into_iter().map(DeadLetterView::from).collect();
        Self { pagination: Pagination::new(page, listing.total), dead_letters }
    }
}

/// A notification that was given up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterView {
    /// What it is replayed by.
    #[schema(value_type = String, format = "uuid")]
    id: DeadLetterId,
    /// About which document: its URL.
    document: String,
    revision: RevisionView,
    /// What the client would have been told.
    action: ActionWord,
    reason: ReasonWord,
    /// How many attempts were made.
    attempts: u32,
    /// The last status the client answered, if it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_status: Option<u16>,
    /// The last error or the beginning of the last answer's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_error: Option<String>,
    #[schema(format = DateTime)]
    first_failure_at: String,
    #[schema(format = DateTime)]
    died_at: String,
}

impl From<DeadNotification> for DeadLetterView {
    fn from(dead: DeadNotification) -> Self {
        Self {
            id: dead.id,
            document: dead.document.as_str().to_owned(),
            revision: RevisionView(dead.revision),
            action: Word(dead.action),
            reason: Word(dead.reason),
            attempts: dead.attempts,
            last_status: dead.last_status,
            last_error: dead.last_error,
            first_failure_at: dead.first_failure_at.to_string(),
            died_at: dead.died_at.to_string(),
        }
    }
}

/// Which dead letters to replay; all, if it does not say.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Replay, example = json!({}))]
pub(crate) struct ReplayInput {
    /// Their ids. If one of them is not listed, none is replayed.
    dead_letters: Option<Vec<String>>,
}

impl ReplayInput {
    /// The ids, if some are named. What is not an id is the id of nothing.
    pub(crate) fn ids(self) -> Result<Option<Vec<DeadLetterId>>, Problem> {
        let unknown = |id: &str| Problem::not_found(format!("there is no dead letter {id}"));
        let ids = self.dead_letters.map(|ids| {
            ids.iter().map(|id| id.parse().map_err(|_| unknown(id))).collect::<Result<_, _>>()
        });
        ids.transpose()
    }
}

/// What a replay did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Replayed {
    /// How many notifications are tried again.
    pub(crate) replayed: u64,
}
