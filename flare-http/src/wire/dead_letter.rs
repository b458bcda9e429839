//! Takes notifications that were given up; gives the list of them, and what to replay.

use flare_core::model::{DeadLetterId, DeadNotification};
use flare_core::port::{Listing, Page};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::RevisionShape;
use super::page::Pagination;
use crate::problem::Problem;

/// A page of dead letters, oldest death first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeadLetterList {
    pagination: Pagination,
    #[schema(value_type = Vec<DeadLetterShape>)]
    dead_letters: Vec<DeadNotification>,
}

impl DeadLetterList {
    pub(crate) fn new(page: Page, listing: Listing<DeadNotification>) -> Self {
        Self { pagination: Pagination::new(page, listing.total), dead_letters: listing.items }
    }
}

/// A notification that was given up.
#[derive(ToSchema)]
#[schema(as = DeadLetter, rename_all = "camelCase")]
#[allow(dead_code, reason = "describes for the OpenAPI document what the model writes")]
pub(crate) struct DeadLetterShape {
    /// What it is replayed by.
    #[schema(format = "uuid")]
    id: String,
    /// About which document: its URL.
    document: String,
    revision: RevisionShape,
    /// What the client would have been told.
    action: ActionWord,
    reason: ReasonWord,
    /// How many attempts were made.
    attempts: u32,
    /// The last status the client answered, if it answered.
    #[schema(nullable = false)]
    last_status: Option<u16>,
    /// The last error or the beginning of the last answer's body.
    #[schema(nullable = false)]
    last_error: Option<String>,
    #[schema(format = DateTime)]
    first_failure_at: String,
    #[schema(format = DateTime)]
    died_at: String,
}

/// What a client is told of a document.
#[derive(ToSchema)]
#[schema(as = Action, rename_all = "lowercase")]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum ActionWord {
    Create,
    Update,
    Delete,
}

/// Why a notification was given up: its attempts or its time are used up.
#[derive(ToSchema)]
#[schema(as = DeathReason, rename_all = "lowercase")]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum ReasonWord {
    Exhausted,
    Expired,
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
