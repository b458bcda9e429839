//! Requests under way: what each is about, and the settings it was made under.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::Subscription;
use crate::pipeline::judge::Attempt;

/// Requests under way, and the settings they were made under, which they also end under.
#[derive(Debug, Default)]
pub(super) struct Requests {
    under_way: HashMap<u64, (Vec<Attempt>, Arc<Subscription>)>,
    /// The number of the next one.
    next: u64,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Notes one; gives the number it is known by.
    pub(super) fn begin(&mut self, attempts: Vec<Attempt>, under: Arc<Subscription>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, (attempts, under));
        number
    }

    /// One has ended; gives what it was about.
    pub(super) fn end(&mut self, number: u64) -> Option<(Vec<Attempt>, Arc<Subscription>)> {
        self.under_way.remove(&number)
    }
}
