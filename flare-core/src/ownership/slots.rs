//! Sets of slots, and which slot a subscription or a consumer belongs to.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{ConsumerId, SlotHash, Subscription, SubscriptionId};

/// Some of the slots there are; cheap to hand round.
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

/// The slots there are to work: those that subscriptions are hashed onto, then the reserved ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotNumbers {
    hashed: u32,
    all: u32,
}

impl SlotNumbers {
    /// So many that subscriptions are hashed onto, and so many reserved ones.
    pub(crate) fn new(hashed: u32, reserved: u32) -> Self {
        Self { hashed, all: hashed.saturating_add(reserved) }
    }

    /// How many there are.
    pub(crate) fn all(self) -> u32 {
        self.all
    }

    /// Whether there is such a slot.
    pub(crate) fn has(self, slot: u32) -> bool {
        slot < self.all
    }

    /// Whether it is one of the reserved ones, or of other settings.
    pub(crate) fn is_reserved(self, slot: u32) -> bool {
        slot >= self.hashed
    }

    /// The slot a subscription is hashed onto.
    pub(crate) fn hashed(self, subscription: SubscriptionId) -> u32 {
        SlotHash::of(subscription).slot(self.hashed)
    }

    /// The slot a consumer is hashed onto.
    pub(crate) fn of_consumer(self, consumer: ConsumerId) -> u32 {
        SlotHash::of_consumer(consumer).slot(self.hashed)
    }

    /// The slot a subscription's lanes belong to: the one that is reserved for them, or the one they
    /// are hashed onto.
    pub(crate) fn of(self, subscription: &Subscription) -> u32 {
        self.slot(subscription.id, subscription.slot)
    }

    /// The same, for one that has reserved a slot, or not.
    pub(crate) fn slot(self, subscription: SubscriptionId, reserved: Option<u32>) -> u32 {
        // A number from other settings reserves nothing.
        let reserved = reserved.filter(|slot| self.is_reserved(*slot) && self.has(*slot));
        reserved.unwrap_or_else(|| self.hashed(subscription))
    }
}
