//! Every span this crate opens, once, beside those of [`flare_core::observe`].
//!
//! | span | fields | around |
//! |---|---|---|
//! | [`REQUEST`] | `id`, `method`, `path`, [`caller`](CALLER), `status` | one request, from its headers to its answer |

/// One request, from its headers to its answer.
pub const REQUEST: &str = "flare.request";
/// The field of that span that has the name of who asks, if it is known.
pub const CALLER: &str = "caller";
