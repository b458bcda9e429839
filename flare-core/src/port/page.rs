//! Takes limit and offset; gives one page of a list with its total.

/// Which part of a list to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// At most this many items.
    pub limit: u32,
    /// After skipping this many.
    pub offset: u64,
}

impl Page {
    /// `limit` items after the first `offset`.
    pub const fn new(limit: u32, offset: u64) -> Self {
        Self { limit, offset }
    }
}

/// One page of a list, oldest first. Past the end it is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// How many items the whole list has.
    pub total: u64,
}

impl<T> Listing<T> {
    /// A page with `items` out of `total`.
    pub const fn new(items: Vec<T>, total: u64) -> Self {
        Self { items, total }
    }
}
