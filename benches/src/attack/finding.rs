//! What a run found out: a figure, and what it has to be.

use std::fmt;

/// A figure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What was measured.
    pub what: String,
    /// What it came to.
    pub found: f64,
    /// What it may come to at most, or at least.
    pub limit: f64,
    /// In which unit, if any.
    pub unit: &'static str,
    /// Whether the limit is a lower one.
    pub lower: bool,
    /// Whether it is what it has to be.
    pub holds: bool,
}

impl Finding {
    /// A figure that must not be above `limit`.
    pub fn at_most(what: impl Into<String>, found: f64, limit: f64, unit: &'static str) -> Self {
        Self { what: what.into(), found, limit, unit, lower: false, holds: found <= limit }
    }

    /// A figure that must not be below `limit`.
    pub fn at_least(what: impl Into<String>, found: f64, limit: f64, unit: &'static str) -> Self {
        Self { what: what.into(), found, limit, unit, lower: true, holds: found >= limit }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, limit, unit, lower, holds } = self;
        let (bound, verdict) =
            (if *lower { "≥" } else { "≤" }, if *holds { "ok" } else { "MISSED" });
        write!(f, "{what:<52} {found:>10.2} {bound} {limit:<8.2} {unit:<6} {verdict}")
    }
}
