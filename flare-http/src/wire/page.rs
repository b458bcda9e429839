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

/// Describes the query of a list; [`Paging`](crate::extract::Paging) reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct PageQuery {
    /// At most this many items; 30 unless the host says otherwise.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<u32>,
    /// After skipping this many.
    #[param(minimum = 0, nullable = false)]
    offset: Option<u64>,
}
