//! Whether a document concerns a client: a subscription's filter, an expression in CEL over `document`
//! (the content), `revision` and `params` (the wildcard values of the document's URL).
//!
//! - [`try_filter`] tries one, without a store.
//! - `language` and `functions` say what an expression may use, `guard` what it may not: nothing whose
//!   cost grows faster than the document. `subject` is a document as expressions see it, `run` one
//!   evaluation, with its allowance, `required` what can be known without one. `memory` keeps what was compiled and what was said.
//! - `revision` is an integer; where the resource has a format it is a timestamp, and `string(revision)`
//!   is what `{revision}` shows.
//! - JSON integers are exact up to 64 bits: `int`, or `uint` above 2⁶³ − 1. Everything else that is a
//!   number is a `double`.
//! - An expression that fails on a document, or says anything but true or false, is no match.
//!
//! Without the feature `filter` none of it is built in: a filter is refused, and where one is stored no
//! client is told anything by it.

#[cfg(feature = "filter")]
mod compiled;
#[cfg(feature = "filter")]
mod depth;
#[cfg(feature = "filter")]
mod functions;
#[cfg(feature = "filter")]
mod guard;
#[cfg(feature = "filter")]
mod language;
#[cfg(feature = "filter")]
#[cfg_attr(not(feature = "internals"), allow(unreachable_pub))]
mod memory;
mod message;
#[cfg(feature = "filter")]
mod pattern;
#[cfg(feature = "filter")]
mod reference;
#[cfg(feature = "filter")]
mod required;
#[cfg(feature = "filter")]
mod run;
#[cfg(feature = "filter")]
mod subject;
#[cfg(all(test, feature = "filter"))]
mod tests;
mod trial;

#[cfg(not(feature = "filter"))]
mod absent;

#[cfg(not(feature = "filter"))]
pub(crate) use absent::AbsentFilters as Filters;
#[cfg(not(feature = "filter"))]
pub use absent::try_filter;
#[cfg(feature = "filter")]
pub(crate) use memory::Filters;
#[cfg(all(feature = "filter", feature = "internals"))]
pub use memory::PreparedFilter;
#[cfg(feature = "filter")]
pub use memory::try_filter;
pub(crate) use message::MessageExpression;
pub use trial::FilterTrial;
