//! Takes a stored document; gives it as reads show it, its content byte for byte.

use flare_core::model::{Document, Resource};
use flare_core::{Error, ErrorKind};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::revision::RevisionView;

/// A document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Document)]
pub(crate) struct DocumentView<'a> {
    /// Its URL, in normal form.
    id: &'a str,
    revision: RevisionView,
    /// When that revision was stored.
    #[schema(format = DateTime)]
    updated_at: String,
    /// The document itself, as it was put.
    #[schema(value_type = Object)]
    content: &'a RawValue,
}

impl<'a> DocumentView<'a> {
    /// What is shown of a live document of that resource.
    pub(crate) fn new(document: &'a Document, resource: &Resource) -> Result<Self, Error> {
        let corrupt = || Error::new(ErrorKind::Corrupt, "document");
        let content = document.content.as_ref().ok_or_else(corrupt)?;
        let content = serde_json::from_slice(content.as_bytes());
        Ok(Self {
            id: document.key.url.as_str(),
            revision: RevisionView(resource.change.shown(document.version.revision())),
            updated_at: document.updated_at.to_string(),
            content: content.map_err(|source| corrupt().with_source(source))?,
        })
    }
}

/// Describes the path of a document; [`routes::documents`](crate::routes) reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct DocumentPath {
    /// The document's URL, percent-encoded, or as it is if it starts with `http://` or `https://`.
    #[param(pattern = "^[hH][tT][tT][pP][sS]?://", example = "http://api.example.com/users/ada")]
    url: String,
}
