//! Takes a revision and the form its resource has; gives it as people and clients see it.

use std::fmt;

use serde::Serialize;

/// A revision as it is shown: the integer or, where the resource has a format, RFC 3339 in UTC.
///
/// ```
/// use flare_core::model::{ChangeRule, Revision};
///
/// let counted = ChangeRule::new("rev", None)?.shown(Revision::new(7));
/// assert_eq!((counted.to_string(), serde_json::to_string(&counted)?), ("7".into(), "7".into()));
///
/// let timed = ChangeRule::new("at", Some("unix"))?.shown(Revision::new(500_000_000));
/// assert_eq!(serde_json::to_string(&timed)?, r#""1970-01-01T00:00:00.5Z""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ShownRevision {
    /// An integer.
    Number(i64),
    /// An instant.
    Time(String),
}

impl fmt::Display for ShownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Time(text) => text.fmt(f),
        }
    }
}
