//! Takes numbers of slots; gives a set of them that is cheap to hand round and to look into.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Some of the slots that lanes are hashed onto.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Slots(Arc<BTreeSet<u32>>);

impl Slots {
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.0.contains(&slot)
    }

    /// In ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

impl FromIterator<u32> for Slots {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        Self(Arc::new(slots.into_iter().collect()))
    }
}
