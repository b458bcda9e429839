//! Takes a problem's parts; gives the one error shape.

use serde::Serialize;
use utoipa::ToSchema;

/// What every error is answered as.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorObject,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorObject {
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// The name of that status.
    pub(crate) title: String,
    /// What is wrong, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) detail: Option<String>,
    /// The field, parameter or header at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) field: Option<String>,
}
