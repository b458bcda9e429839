//! Who has which version of a document, as reads show it.

use std::collections::HashMap;

use flare_core::model::{DocumentDelivery, Resource, ResourceId, Version};
use flare_core::port::{Listing, Page};
use serde::Serialize;
use utoipa::ToSchema;

use super::page::Pagination;
use super::revision::RevisionView;
use super::unreadable::{Listed, ListedDelivery};
use super::word::{PresentWord, WaitsForWord, Word};

/// A page of who has which version of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedDelivery>)]
    deliveries: Vec<Listed<DeliveryView>>,
}

impl DeliveryList {
    pub(crate) fn new(
        page: Page,
        listing: Listing<DocumentDelivery>,
        resources: &HashMap<ResourceId, Resource>,
    ) -> Self {
        let pagination = Pagination::new(page, listing.total);
        let shown = |delivery: &DocumentDelivery| {
            let resource = resources.get(&delivery.resource)?;
            Some(Listed::Readable(DeliveryView::new(delivery, resource)))
        };
        let readable = listing.items.iter().filter_map(shown);
        let others = listing.unreadable.iter().map(|it| Listed::Unreadable(it.into()));
        Self { pagination, deliveries: readable.chain(others).collect() }
    }
}

/// What a subscription's client has of a document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DocumentDelivery)]
pub(crate) struct DeliveryView {
    /// Whose client.
    #[schema(format = "uuid")]
    subscription: String,
    /// The newest version it acknowledged or refused, or that needed no telling.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    settled: Option<VersionView>,
    /// The newest version it should have.
    wanted: VersionView,
    /// Whether it holds the document.
    present: PresentWord,
    /// Whether something is left to tell.
    pending: bool,
    /// What that waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    waits_for: Option<WaitsForWord>,
    /// Attempts that failed so far.
    attempts: u32,
    /// When it is told next, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    next_attempt_at: Option<String>,
    /// Why it was given up, or why the client last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// Shown if the filter refuses the document as it is now: the client is not to hold it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    filtered: bool,
}

/// A version of a document: its revision, and whether it is deleted in it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Version)]
struct VersionView {
    revision: RevisionView,
    gone: bool,
}

impl DeliveryView {
    fn new(delivery: &DocumentDelivery, resource: &Resource) -> Self {
        let version = |version: Version| VersionView {
            revision: RevisionView(resource.change.shown(version.revision())),
            gone: version.is_gone(),
        };
        Self {
            subscription: delivery.subscription.to_string(),
            settled: delivery.settled.map(version),
            wanted: version(delivery.wanted),
            present: Word(delivery.present),
            pending: delivery.pending,
            waits_for: delivery.waits_for.map(Word),
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(|at| at.to_string()),
            last_error: delivery.last_error.clone(),
            filtered: delivery.filtered,
        }
    }
}
