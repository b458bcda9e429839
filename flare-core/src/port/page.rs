//! Takes limit and offset; gives one page of a list with its total.

use crate::error::Result;
use crate::model::Unreadable;

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
    /// Those of the page that cannot be read. The total counts them.
    pub unreadable: Vec<Unreadable>,
    /// How many items the whole list has.
    pub total: u64,
}

impl<T> Listing<T> {
    /// A page with `items` out of `total`.
    pub const fn new(items: Vec<T>, total: u64) -> Self {
        Self { items, unreadable: Vec::new(), total }
    }

    /// A page of what could be read and what could not be; any other failure is the answer.
    pub fn of_read(read: impl IntoIterator<Item = Result<T>>, total: u64) -> Result<Self> {
        let mut listing = Self::new(Vec::new(), total);
        for item in read {
            match item {
                Ok(item) => listing.items.push(item),
                Err(error) => match error.unreadable() {
                    Some(unreadable) => listing.unreadable.push(unreadable.clone()),
                    None => return Err(error),
                },
            }
        }
        Ok(listing)
    }

    /// The same page with something else made of each item.
    pub fn map<U>(self, make: impl FnMut(T) -> U) -> Listing<U> {
        let Self { items, unreadable, total } = self;
        Listing { items: items.into_iter().map(make).collect(), unreadable, total }
    }
}
