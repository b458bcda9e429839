//! Filters in a build without the feature `filter`: all are refused, and of a document none says anything.

use super::trial::{FilterJudgement, FilterTrial};
use crate::model::{Document, Filter, Invalid, Resource};

/// Filters, none of which can be asked.
#[derive(Debug, Default)]
pub(crate) struct AbsentFilters {}

impl AbsentFilters {
    /// Refuses any filter.
    pub(crate) fn check(&self, _: &Filter, _: &[&str]) -> Result<(), Invalid> {
        Err(not_built_in())
    }

    /// Tells of each filter that it cannot be asked.
    pub(crate) fn judge(&self, filters: &[&Filter], _: &Resource, _: &Document) -> FilterJudgement {
        FilterJudgement { verdicts: vec![None; filters.len()], ..FilterJudgement::default() }
    }
}

/// Refuses any filter.
pub fn try_filter<'a>(
    _: &Filter,
    _: &[u8],
    _: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<FilterTrial, Invalid> {
    Err(not_built_in())
}

pub(super) fn not_built_in() -> Invalid {
    Invalid::new("filter", "needs a build with the feature `filter`")
}
