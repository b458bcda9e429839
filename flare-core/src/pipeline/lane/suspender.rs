//! Takes a client that wants to hear no more, or has only failed for long; suspends its
//! subscription, unless somebody changed it meanwhile.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::info;

use super::Lane;
use crate::error::Result;
use crate::model::{Subscription, SubscriptionStatus, Timestamp};
use crate::pipeline::event::{Event, EventKind};
use crate::port::Replaced;

/// A suspension that has to be stored before anything else is sent.
pub(super) struct Suspension {
    reason: String,
    /// Only if no other lane of the subscription got through since then.
    failing_since: Option<Timestamp>,
    /// Not before this time, by our clock.
    pub(super) at: Timestamp,
    running: Option<BoxFuture<'static, Result<Suspended>>>,
}

/// What became of it.
pub(super) enum Suspended {
    /// The subscription is as this says: suspended, or as somebody else left it.
    Now(Arc<Subscription>),
    /// Somebody removed it.
    Removed,
    /// Another of its lanes gets through.
    NotNeeded,
}

impl Suspension {
    pub(super) fn new(reason: String, failing_since: Option<Timestamp>) -> Self {
        Self { reason, failing_since, at: Timestamp::EPOCH, running: None }
    }

    /// Begins, if it is time and not begun yet.
    pub(super) fn begin(&mut self, lane: &Lane) {
        if self.running.is_none() && self.at <= lane.context.now() {
            let work = suspend(lane.clone(), self.reason.clone(), self.failing_since);
            self.running = Some(work.boxed());
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// What became of it; never, if it has not begun.
    pub(super) async fn ended(&mut self) -> Result<Suspended> {
        let ended = match &mut self.running {
            Some(running) => running.await,
            None => std::future::pending().await,
        };
        self.running = None;
        ended
    }
}

async fn suspend(
    lane: Lane,
    reason: String,
    failing_since: Option<Timestamp>,
) -> Result<Suspended> {
    let context = &lane.context;
    let id = lane.id.subscription;
    if let Some(since) = failing_since
        && lane.subscription.spec.delivery().lanes() > 1
    {
        let lanes = context.repository.lanes(id).await?;
        if lanes.items.iter().any(|lane| lane.last_success_at > Some(since)) {
            return Ok(Suspended::NotNeeded);
        }
    }
    let mut suspended = (*lane.subscription).clone();
    let generation = suspended.generation;
    suspended.status = SubscriptionStatus::Suspended;
    suspended.reason = Some(reason.clone());
    suspended.updated_at = context.now();
    match context.repository.replace_subscription(generation, suspended).await? {
        Replaced::Done(suspended) => {
            info!(subscription = %id, reason, "suspended");
            context.events.emit(Event::new(id, EventKind::Suspended { reason }));
            // The other lanes find out by the next change at the latest.
            context.refresh(&suspended).await?;
            Ok(Suspended::Now(Arc::new(suspended)))
        }
        Replaced::Conflict(newer) => Ok(Suspended::Now(Arc::new(newer))),
        Replaced::Missing => Ok(Suspended::Removed),
    }
}
