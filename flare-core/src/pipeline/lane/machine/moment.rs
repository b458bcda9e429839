//! What a lane has to know beside what happens to it.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{LaneId, Subscription, Takeover, Timestamp};
use crate::pipeline::context::Context;

/// What stays the same for as long as a lane is worked.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) lane: LaneId,
    /// When the lane's owner took it over.
    pub(crate) takeover: Takeover,
    /// Requests in flight of a subscription that does not say.
    pub(crate) concurrency: u32,
    /// The longest a version is tried.
    pub(crate) max_ttl: Duration,
    /// The longest a client may have itself held.
    pub(crate) hold_limit: Duration,
    /// A client that only fails for this long is suspended.
    pub(crate) suspend_after: Duration,
    /// How often the lane looks for rows whose wake-up got lost.
    pub(crate) rederive_every: Duration,
    /// The node that works it.
    pub(crate) node: String,
}

impl Figures {
    pub(crate) fn of(context: &Context, lane: LaneId, takeover: Takeover) -> Self {
        let settings = &context.settings;
        Self {
            lane,
            takeover,
            concurrency: settings.concurrency,
            max_ttl: settings.max_ttl,
            hold_limit: settings.hold_limit,
            suspend_after: settings.suspend_after,
            rederive_every: settings.rederive_every,
            node: context.node.to_string(),
        }
    }
}

/// What is so when something happens.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// The store's time.
    pub(crate) now: Timestamp,
    /// Whether the slot is certainly this node's.
    pub(crate) trusted: bool,
    /// Whether the lane is to end.
    pub(crate) stop: bool,
    /// Until when the client wants to be left alone, as any lane of the subscription was told.
    pub(crate) held_until: Timestamp,
    /// When the lane's queue was made again, if that is not noted yet.
    pub(crate) restored: Option<Timestamp>,
    /// The newest settings that are known here.
    pub(crate) newest: Arc<Subscription>,
    /// From 0 up to 1, so that what failed together does not come back together.
    pub(crate) random: f64,
    /// Whether a host listens to events.
    pub(crate) listened: bool,
}

impl Moment {
    /// A little more than `time`.
    pub(crate) fn jittered(&self, time: Duration) -> Duration {
        time.mul_f64(1.0 + self.random / 5.0)
    }
}
