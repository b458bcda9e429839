//! What happens to the lanes of a node.

use std::sync::Arc;

use crate::model::{Resource, Subscription, SubscriptionId, Takeover, Timestamp};
use crate::ownership::SlotChange;
use crate::port::EpochGrant;

/// Something that happened to the lanes of a node.
#[derive(Debug)]
pub(in crate::pipeline::lanes) enum LanesEvent<T, D> {
    /// The node has other slots, by the store's time.
    Slots(SlotChange<(T, Takeover), D, Timestamp>),
    /// A subscription has changed.
    Changed(SubscriptionId),
    /// Any of them may have.
    ChangesMissed,
    /// A task ended, by itself or by a panic.
    Ended { task: u64, failed: bool },
    /// Subscriptions were read for themselves: one that changed, or those whose lanes were prepared.
    Read(Vec<ReadSubscription>),
    /// Subscriptions of some slots were read.
    PageRead {
        read: Vec<ReadSubscription>,
        /// How far it came; at the end there is nothing after it.
        after: Option<SubscriptionId>,
        /// It came no further because the store failed.
        failed: bool,
    },
    /// The time has come that it wanted to be woken at.
    Rung,
}

/// What reading a subscription came to.
#[derive(Debug, Clone)]
pub(in crate::pipeline::lanes) enum ReadSubscription {
    /// It is stored so.
    Found {
        subscription: Arc<Subscription>,
        /// What its lanes need to start, once that was asked for.
        prepared: Option<PreparedLanes>,
    },
    /// It is not there.
    Gone(SubscriptionId),
    /// This version cannot read it, and sends nothing for it.
    Unreadable(SubscriptionId),
    /// It could not be read.
    Failed(SubscriptionId),
}

/// What lanes need to start.
#[derive(Debug, Clone)]
pub(in crate::pipeline::lanes) struct PreparedLanes {
    pub(in crate::pipeline::lanes) resource: Arc<Resource>,
    /// An epoch of their own, if they need one.
    pub(in crate::pipeline::lanes) drawn: Option<EpochGrant>,
}

/// What is so when something happens.
pub(in crate::pipeline::lanes) struct LanesMoment<'a, T> {
    /// The store's time.
    pub(in crate::pipeline::lanes) now: Timestamp,
    /// From 0 up to 1, so that nodes do not all do the same at once.
    pub(in crate::pipeline::lanes) random: f64,
    /// Whether a slot is certainly this node's under a term.
    pub(in crate::pipeline::lanes) trusted: &'a dyn Fn(&T, u32) -> bool,
}
