//! Takes a page of a list; gives the part of the answer that says which it is.

use flare_core::port::Page;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// Which part of a list this is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Pagination {
    /// At most this many items.
    #[schema(minimum = 1, maximum = 1000)]
    limit: u32,
    /// After skipping this many.
    offset: u64,
    /// How many the whole list has.
    total: u64,
}

impl Pagination {
    pub(crate) fn new(page: Page, total: u64) -> Self {
        Self { limit: page.limit, offset: page.offset, total }
    }
}

/// The query of a list.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// At most this many items; 30 unless the host says otherwise.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    pub(crate) limit: Option<u32>,
    /// After skipping this many.
    #[param(minimum = 0, nullable = false)]
    pub(crate) offset: Option<u64>,
}
