//! Takes a filter and a document to try it on; gives what it says.

use super::flare::Flare;
use crate::error::{Error, Result};
use crate::filter::{FilterTrial, try_filter};
use crate::model::Filter;

impl Flare {
    /// Tries a filter on a document, with these wildcard values, without storing anything. One that is
    /// wrong is refused as `filter`, with where in it and why.
    ///
    /// `revision` is not known here: an expression that asks for it fails.
    pub fn test_filter<'a>(
        &self,
        filter: &str,
        document: &[u8],
        params: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<FilterTrial> {
        let filter = Filter::new(filter).map_err(|invalid| invalid.within("filter"));
        let tried = filter.and_then(|filter| try_filter(&filter, document, params));
        tried.map_err(|invalid| Error::invalid("test_filter", invalid))
    }
}
