//! What is to be done for the lanes of a node.

use std::sync::Arc;
use std::time::Duration;

use super::WorkEpoch;
use crate::model::{LaneId, Resource, Subscription, SubscriptionId};
use crate::ownership::Slots;

/// Something that is to be done for the lanes of a node.
#[derive(Debug)]
pub(in crate::pipeline::lanes) enum LanesCommand<T> {
    /// Listen to a slot's queue after a while.
    Listen {
        slot: u32,
        /// What its end is told by.
        task: u64,
        after: Duration,
    },
    /// Have a listener finish what it has heard and end.
    StopListening(u64),
    /// Have lanes worked.
    Start(StartedLanes<T>),
    /// Hand newer settings to the lanes of a subscription.
    Update(Arc<Subscription>),
    /// Have a lane finish what is in flight and end.
    Stop(LaneId),
    /// Let a lane not be reached any more.
    Forget(LaneId),
    /// Drop a task, with what it has in flight.
    Abort(u64),
    /// Say in the log that what is in flight is dropped.
    LogDropped,
    /// Store that a subscription has left the slot it had to leave.
    StoreLeft(Arc<Subscription>),
    /// Read a subscription.
    ReadOne(SubscriptionId),
    /// Read the next subscriptions of some slots, after one of them.
    ReadPage { slots: Slots, after: Option<SubscriptionId> },
    /// Read what the lanes of subscriptions need to start.
    Prepare(Vec<UnpreparedLanes>),
    /// See that all queues are there; those of these slots among them.
    CheckQueues(Vec<u32>),
}

/// Lanes of one subscription that start together.
#[derive(Debug)]
pub(in crate::pipeline::lanes) struct StartedLanes<T> {
    pub(in crate::pipeline::lanes) slot: u32,
    /// Which, and what the end of each is told by.
    pub(in crate::pipeline::lanes) lanes: Vec<(LaneId, u64)>,
    /// The term of their slot.
    pub(in crate::pipeline::lanes) term: T,
    /// What they are worked under in it.
    pub(in crate::pipeline::lanes) epoch: WorkEpoch,
    pub(in crate::pipeline::lanes) subscription: Arc<Subscription>,
    pub(in crate::pipeline::lanes) resource: Arc<Resource>,
    /// Their documents were other lanes', or another slot's, until now.
    pub(in crate::pipeline::lanes) moved: bool,
}

/// A subscription whose lanes are to start.
#[derive(Debug)]
pub(in crate::pipeline::lanes) struct UnpreparedLanes {
    pub(in crate::pipeline::lanes) subscription: Arc<Subscription>,
    /// They need an epoch of their own.
    pub(in crate::pipeline::lanes) draws: bool,
}
