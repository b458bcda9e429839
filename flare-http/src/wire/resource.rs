//! Takes a resource as a user writes it, or as Flare knows it; gives the other.

use flare_core::model::{ChangeRule, NewResource, Resource, ResourceId};
use flare_core::port::{Listing, Page};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::object::Object;
use super::page::Pagination;
use super::unreadable::{Listed, ListedResource};
use crate::problem::Problem;

/// A kind of document, as it is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewResource, example = json!({
    "endpoint": "http://api.example.com/users/{id}",
    "change": {"field": "updatedAt", "format": "rfc3339"}
}))]
pub(crate) struct ResourceInput {
    /// The pattern its documents' URLs match: absolute, with at least one wildcard `{name}`.
    #[schema(required = true, nullable = false)]
    endpoint: Option<String>,
    #[schema(required = true, nullable = false, value_type = ChangeInput)]
    change: Option<Object<ChangeInput>>,
}

/// Where a document says which version it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewChange)]
pub(crate) struct ChangeInput {
    /// The top-level key that holds the revision or, with a leading `/`, a JSON Pointer.
    #[schema(required = true, nullable = false, min_length = 1)]
    field: Option<String>,
    /// `rfc3339`, `unix`, `unix-ms` or a Go reference-time layout; without, an integer.
    format: Option<String>,
}

impl ResourceInput {
    /// What is asked for; the model checks the rest.
    pub(crate) fn read(self) -> Result<NewResource, Problem> {
        let required = |field| Problem::invalid(field, "is required");
        let endpoint = self.endpoint.ok_or_else(|| required("endpoint"))?;
        let Object(change) = self.change.ok_or_else(|| required("change"))?;
        let field = change.field.ok_or_else(|| required("change.field"))?;
        let new = NewResource::new(endpoint);
        Ok(match change.format {
            Some(format) => new.change(field, format),
            None => new.change_field(field),
        })
    }
}

/// A kind of document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Resource)]
pub(crate) struct ResourceView {
    /// What it is known by.
    #[schema(value_type = String, format = "uuid")]
    id: ResourceId,
    /// The pattern its documents' URLs match, in normal form.
    endpoint: String,
    #[schema(value_type = ChangeView)]
    change: ChangeRule,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
}

/// Where a document says which version it is.
#[derive(ToSchema)]
#[schema(as = Change)]
#[allow(dead_code, reason = "describes for the OpenAPI document what the model writes")]
pub(crate) struct ChangeView {
    /// The key or JSON Pointer of the revision.
    field: String,
    /// The form the revision is written in; absent for an integer.
    #[schema(nullable = false)]
    format: Option<String>,
}

impl From<Resource> for ResourceView {
    fn from(resource: Resource) -> Self {
        Self {
            id: resource.id,
            endpoint: resource.endpoint.as_str().to_owned(),
            change: resource.change,
            created_at: resource.created_at.to_string(),
        }
    }
}

/// A page of resources.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResourceList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedResource>)]
    resources: Vec<Listed<ResourceView>>,
}

impl ResourceList {
    pub(crate) fn new(page: Page, listing: Listing<Resource>) -> Self {
        let items = listing.items.into_iter().map(|it| (it.id.to_string(), it.into()));
        let resources = Listed::page(items, &listing.unreadable);
        Self { pagination: Pagination::new(page, listing.total), resources }
    }
}

/// Describes the path of a resource; [`ResourceOnly`](crate::extract::ResourceOnly) reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct ResourcePath {
    /// The id of the resource.
    #[param(format = "uuid")]
    rid: String,
}
