//! What a filter said: of one document that an operator tried, and of one that clients may be told of. Values.

use crate::model::FilterVerdict;

/// What a filter says of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterTrial {
    /// Whether a client with it would have the document.
    pub matches: bool,
    /// Why the expression says nothing of it: that is no match.
    pub error: Option<String>,
}

impl FilterTrial {
    #[cfg(feature = "filter")]
    pub(super) fn of(said: Result<bool, String>) -> Self {
        match said {
            Ok(matches) => Self { matches, error: None },
            Err(error) => Self { matches: false, error: Some(error) },
        }
    }
}

/// What filters say of one document, in the order they were asked in.
#[derive(Debug, Default)]
pub(crate) struct FilterJudgement {
    /// `None` for one that cannot be asked here.
    pub(crate) verdicts: Vec<Option<FilterVerdict>>,
    /// Expressions that were evaluated for it.
    pub(crate) evaluated: u64,
    /// Those of them that failed.
    pub(crate) failed: u64,
}
