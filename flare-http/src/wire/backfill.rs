//! What a client that lost its data wants again.

use serde::Deserialize;
use utoipa::ToSchema;

/// Which documents are wanted again; all, if it does not say.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Resync, example = json!({}))]
pub(crate) struct ResyncInput {
    /// Only documents whose URL begins so.
    pub(crate) prefix: Option<String>,
}
