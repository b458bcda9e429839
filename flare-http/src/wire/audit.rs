//! What operators and nodes did, as JSON has it.

use flare_core::model::{Actor, AuditEntry, AuditEntryId};
use flare_core::port::{Listing, Page};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::page::Pagination;
use super::unreadable::{Listed, ListedEntry};

/// A page of the log, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedEntry>)]
    entries: Vec<Listed<EntryView>>,
}

impl LogList {
    pub(crate) fn new(page: Page, listing: Listing<AuditEntry>) -> Self {
        let entries = listing.items.into_iter().map(|it| (it.id.to_string(), EntryView::from(it)));
        let mut entries = Listed::page(entries, &listing.unreadable);
        entries.reverse();
        Self { pagination: Pagination::new(page, listing.total), entries }
    }
}

/// Something that was done.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LogEntry)]
pub(crate) struct EntryView {
    /// What it is known by; later ones have greater ones.
    #[schema(value_type = String, format = "uuid")]
    id: AuditEntryId,
    /// When it was done.
    #[schema(format = DateTime)]
    at: String,
    by: ActorView,
    /// What was done: `created`, `replaced`, `deleted`, `paused`, `resumed`, `suspended`, `retried`, `replayed`,
    /// `backfill-asked`, `backfill-cancelled`, `resync-asked`, `resync-cancelled`, `pinned`, `unpinned`, `joined`,
    /// `left`, `lost`, `drain-asked`, `refused`.
    action: String,
    /// What it was done to: `resource/…`, `subscription/…`, `consumer/…` or `node/…` with the id, `slot/…` with its
    /// number, or `sign-in/no-token` and `sign-in/unknown-token`.
    subject: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detail: Option<String>,
    /// How often, where several of the same are told together.
    #[schema(minimum = 1)]
    count: u64,
}

impl From<AuditEntry> for EntryView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at.to_string(),
            by: ActorView::from(&entry.actor),
            action: entry.action.as_str().to_owned(),
            subject: entry.subject.to_string(),
            detail: entry.detail,
            count: entry.count,
        }
    }
}

/// Who did something.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Actor)]
struct ActorView {
    kind: ActorWord,
    /// The name of the token or node; none of the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
}

/// Named: the holder of a token, or who the host says it is. Node: a node by itself. Host: the program that has
/// Flare in it, or anybody where there are no tokens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ActorKind)]
enum ActorWord {
    Named,
    Node,
    Host,
}

impl From<&Actor> for ActorView {
    fn from(actor: &Actor) -> Self {
        let (kind, name) = match actor {
            Actor::Named(name) => (ActorWord::Named, Some(name.clone())),
            Actor::Node(name) => (ActorWord::Node, Some(name.clone())),
            _ => (ActorWord::Host, None),
        };
        Self { kind, name }
    }
}

/// What the log is asked for beside a page of it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "read by its extractor, described by this")]
pub(crate) struct LogQuery {
    /// Only what was done to this, as entries have it: `subscription/0190163d-8694-739b-aea5-966c26f8ad91`.
    #[param(nullable = false)]
    subject: Option<String>,
}
