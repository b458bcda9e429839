//! Takes a resource as a user writes it, or as Flare knows it; gives the other.

use flare_core::model::{Invalid, NewResource, Resource, ResourceId};
use flare_core::port::{Listing, Page};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::page::Pagination;
use super::unreadable::{Listed, ListedResource};

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
    #[schema(required = true, nullable = false)]
    change: Option<ChangeInput>,
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

impl TryFrom<ResourceInput> for NewResource {
    type Error = Invalid;

    fn try_from(input: ResourceInput) -> Result<Self, Invalid> {
        let required = |field| Invalid::new(field, "is required");
        let endpoint = input.endpoint.ok_or_else(|| required("endpoint"))?;
        let change = input.change.ok_or_else(|| required("change"))?;
        let field = change.field.ok_or_else(|| required("change.field"))?;
        let new = Self::new(endpoint);
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
    change: ChangeView,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
}

/// Where a document says which version it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Change)]
pub(crate) struct ChangeView {
    /// The key or JSON Pointer of the revision.
    field: String,
    /// The form the revision is written in; absent for an integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    format: Option<String>,
}

impl From<Resource> for ResourceView {
    fn from(resource: Resource) -> Self {
        Self {
            id: resource.id,
            endpoint: resource.endpoint.as_str().to_owned(),
            change: ChangeView {
                field: resource.change.field().as_str().to_owned(),
                format: resource.change.format().as_str().map(str::to_owned),
            },
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

/// The path of a resource.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ResourcePath {
    /// The id of the resource.
    #[param(format = "uuid")]
    pub(crate) rid: String,
}
