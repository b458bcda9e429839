//! Every span this crate opens, once, beside those of [`flare_core::observe`].
//!
//! | span | fields | around |
//! |---|---|---|
//! | [`REQUEST`] | `id`, `method`, `path`, `status` | one request, from its headers to its answer |

/// One request, from its headers to its answer.
pub const REQUEST: &str = "flare.request";
