//! A set of slots that is cheap to hand round and to look into.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Some of the slots that lanes are hashed onto.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slots(Arc<BTreeSet<u32>>);

impl Slots {
    /// Whether a slot is one of them.
    pub fn contains(&self, slot: u32) -> bool {
        self.0.contains(&slot)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

impl FromIterator<u32> for Slots {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        Self(Arc::new(slots.into_iter().collect()))
    }
}
