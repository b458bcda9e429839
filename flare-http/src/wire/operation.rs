//! The bodies of operations that say little or nothing.

use serde::Deserialize;
use utoipa::ToSchema;

/// An object without fields; no body at all means the same.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(max_properties = 0, example = json!({}))]
pub(crate) struct Nothing {}

/// Which documents are wanted again; all, if it does not say.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Resync, example = json!({}))]
pub(crate) struct ResyncInput {
    /// Only documents whose URL begins so.
    pub(crate) prefix: Option<String>,
}
