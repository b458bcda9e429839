//! Takes a client that wants to hear no more, or has only failed for long; suspends its
//! subscription, unless an operator changed it meanwhile.

use std::sync::Arc;

use tracing::info;

use super::Lane;
use crate::error::Result;
use crate::model::{AuditAction, AuditSubject, Subscription, SubscriptionStatus, Timestamp};
use crate::pipeline::event::{Event, EventKind};
use crate::port::Replaced;

/// What became of it.
#[derive(Debug)]
pub(super) enum Suspended {
    /// The subscription is as this says: suspended, or as an operator left it.
    Now(Arc<Subscription>),
    /// It was removed.
    Removed,
    /// Another of its lanes gets through.
    NotNeeded,
}

/// Suspends a subscription as it was read.
pub(super) async fn suspend(
    lane: Lane,
    subscription: Arc<Subscription>,
    reason: String,
    failing_since: Option<Timestamp>,
) -> Result<Suspended> {
    let context = &lane.context;
    let id = lane.id.subscription;
    if let Some(since) = failing_since
        && subscription.spec.delivery().lanes() > 1
    {
        let lanes = context.repository.lanes(id).await?;
        if lanes.items.iter().any(|lane| lane.last_success_at > Some(since)) {
            return Ok(Suspended::NotNeeded);
        }
    }
    let mut suspended = (*subscription).clone();
    let generation = suspended.generation;
    suspended.status = SubscriptionStatus::Suspended;
    suspended.reason = Some(reason.clone());
    suspended.updated_at = context.now();
    match context.repository.replace_subscription(generation, suspended).await? {
        Replaced::Done(suspended) => {
            info!(subscription = %id, reason, "suspended");
            let subject = AuditSubject::subscription(id);
            context.audit.record(&context.actor, AuditAction::Suspended, subject, reason.clone());
            context.events.emit(Event::new(id, EventKind::Suspended { reason }));
            // The other lanes find out by the next change at the latest.
            context.refresh(&suspended).await?;
            Ok(Suspended::Now(Arc::new(suspended)))
        }
        Replaced::Conflict(newer) => Ok(Suspended::Now(Arc::new(newer))),
        Replaced::Missing => Ok(Suspended::Removed),
    }
}
