//! A filter that is tried on a document, and what it says.

use flare_core::filter::FilterTrial;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::entries::Entries;
use super::json::RawJson;

/// A filter, and what it is tried on.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({
    "filter": "document.total > 100 && params.shop == 'bern'",
    "document": {"total": 250},
    "params": {"shop": "bern"}
}))]
pub(crate) struct FilterTest {
    /// A CEL expression over `document` and `params`.
    pub(crate) filter: String,
    /// The document, as it would be put.
    #[schema(value_type = Object)]
    pub(crate) document: RawJson,
    /// The wildcard values of its URL.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    pub(crate) params: Option<Entries<String>>,
}

/// What a filter says of a document.
#[derive(Serialize, ToSchema)]
pub(crate) struct FilterTested {
    /// Whether a client with it would have the document.
    matches: bool,
    /// Why the expression says nothing of it: that is no match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
}

impl From<FilterTrial> for FilterTested {
    fn from(tried: FilterTrial) -> Self {
        Self { matches: tried.matches, error: tried.error }
    }
}
