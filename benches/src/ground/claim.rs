//! Takes a figure and the limit it was promised to keep; gives a line of a table, or JSON.

use std::fmt;

use serde_json::{Value, json};

/// Something that is said about what Flare costs, with what was measured.
#[derive(Debug)]
pub(super) struct Claim {
    /// What is measured, as a machine names it.
    pub(super) id: &'static str,
    /// What is measured, in words.
    pub(super) name: String,
    /// What was measured.
    pub(super) figure: f64,
    /// What it must not exceed.
    pub(super) limit: f64,
    /// What the figure was made of.
    pub(super) detail: String,
}

impl Claim {
    pub(super) const HEADER: &'static str =
        "claim                                              figure   limit  holds  of";

    pub(super) fn holds(&self) -> bool {
        self.figure <= self.limit
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, figure, limit, detail, .. } = self;
        let holds = if self.holds() { "yes" } else { "NO" };
        write!(f, "{name:<49} {figure:>7.2} {limit:>7} {holds:>6}  {detail}")
    }
}

/// The claims as one object.
pub(super) fn to_json(claims: &[Claim], documents: usize) -> Value {
    let one = |claim: &Claim| {
        let value = json!({
            "figure": claim.figure,
            "limit": claim.limit,
            "holds": claim.holds(),
            "detail": claim.detail,
        });
        (claim.id.to_owned(), value)
    };
    let holds = claims.iter().all(Claim::holds);
    let claims: serde_json::Map<String, Value> = claims.iter().map(one).collect();
    json!({ "holds": holds, "documents": documents, "claims": claims })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_none_does_not_hold() {
        let claim = |figure| Claim {
            id: "it",
            name: "it".to_owned(),
            figure,
            limit: 2.0,
            detail: String::new(),
        };
        assert!(claim(2.0).holds());
        assert!(!claim(2.1).holds());
        assert!(!claim(f64::NAN).holds());
    }
}
