//! Takes requests about kinds of documents; gives what the handle says.

use axum::extract::{OriginalUri, State as Shared};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;

use super::answer::{Answer, json};
use crate::extract::{Acting, JsonBody, NoQuery, Paging, ResourceOnly};
use crate::from_json::resource_from_json;
use crate::options::State;
use crate::wire::page::PageQuery;
use crate::wire::resource::{ResourceInput, ResourceList, ResourcePath, ResourceView};
use crate::wire::unreadable::{Listed, ListedResource};

/// Lists the kinds of documents, oldest first.
#[utoipa::path(get, operation_id = "listResources", path = "/resources", tag = "resources", params(PageQuery),
    responses((status = 200, description = "A page of them", body = ResourceList)))]
pub(crate) async fn list(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    let listing = state.flare().resources(page).await?;
    json(StatusCode::OK, &ResourceList::new(page, listing))
}

/// Creates a kind of document.
#[utoipa::path(post, operation_id = "createResource", path = "/resources", tag = "resources", request_body = ResourceInput,
    responses(
        (status = 201, description = "Created", body = ResourceView,
            headers(("Location" = String, description = "Where it is read"))),
        (status = 409, description = "Another resource has that endpoint"),
    ))]
pub(crate) async fn create(
    Acting(state): Acting,
    OriginalUri(uri): OriginalUri,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let new = resource_from_json(&body)?;
    let resource = state.flare().create_resource(new).await?;
    let location = [(LOCATION, format!("{}/{}", uri.path(), resource.id))];
    let answer = json(StatusCode::CREATED, &ResourceView::from(resource))?;
    Ok((location, answer).into_response())
}

/// Reads a kind of document.
#[utoipa::path(get, operation_id = "readResource", path = "/resources/{rid}", tag = "resources", params(ResourcePath),
    responses((status = 200, description = "There it is", body = ListedResource)))]
pub(crate) async fn read(
    Shared(state): Shared<State>,
    ResourceOnly(id): ResourceOnly,
    _: NoQuery,
) -> Answer {
    let listed = match state.flare().resource(id).await {
        Ok(resource) => Listed::Readable(ResourceView::from(resource)),
        Err(error) => match error.unreadable() {
            Some(unreadable) => Listed::Unreadable(unreadable.into()),
            None => return Err(error.into()),
        },
    };
    json(StatusCode::OK, &listed)
}

/// Deletes a kind of document and, in the background, its documents.
#[utoipa::path(delete, operation_id = "deleteResource", path = "/resources/{rid}", tag = "resources", params(ResourcePath),
    responses(
        (status = 204, description = "Deleted"),
        (status = 409, description = "It has subscriptions"),
    ))]
pub(crate) async fn delete(
    Acting(state): Acting,
    ResourceOnly(id): ResourceOnly,
    _: NoQuery,
) -> Answer {
    state.flare().delete_resource(id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
