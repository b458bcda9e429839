//! What a profile is asked for.

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// How long, and in which form.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "read by its extractor, described by this")]
pub(crate) struct ProfileQuery {
    /// For so many seconds, and less than a request may take; 5 unless it says.
    #[param(minimum = 1, maximum = 60, nullable = false)]
    seconds: Option<u64>,
    /// A flame graph to look at, or a file for pprof's tools; a flame graph unless it says.
    #[param(nullable = false, inline)]
    format: Option<FormWord>,
}

/// The form of a profile.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "read by its extractor, described by this")]
enum FormWord {
    Svg,
    Pprof,
}
