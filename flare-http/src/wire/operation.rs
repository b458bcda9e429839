//! Takes the body of an operation; gives nothing, for there is nothing to say.

use serde::Deserialize;
use utoipa::ToSchema;

/// An object without fields; no body at all means the same.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(max_properties = 0, example = json!({}))]
pub(crate) struct Nothing {}
