//! Takes a document's URL; gives who has which version of it, as the handle says.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::extract::State as Shared;
use axum::http::{StatusCode, Uri};

use super::answer::{Answer, json};
use super::documents::document_url;
use crate::extract::Paging;
use crate::options::State;
use crate::wire::deliveries::DeliveryList;
use crate::wire::document::DocumentPath;
use crate::wire::page::PageQuery;

/// Lists which subscription's client has which version of a document, and what the rest waits for.
#[utoipa::path(get, operation_id = "listDeliveries", path = "/deliveries/{url}", tag = "documents",
    params(DocumentPath, PageQuery),
    responses((status = 200, description = "A page of them", body = DeliveryList)))]
pub(crate) async fn list(Shared(state): Shared<State>, uri: Uri, Paging(page): Paging) -> Answer {
    let url = document_url(&uri, "/deliveries/")?;
    let listing = state.flare().deliveries(&url, page).await?;
    let mut resources = HashMap::new();
    for delivery in &listing.items {
        if let Entry::Vacant(unknown) = resources.entry(delivery.resource) {
            unknown.insert(state.flare().resource(delivery.resource).await?);
        }
    }
    json(StatusCode::OK, &DeliveryList::new(page, listing, &resources))
}
