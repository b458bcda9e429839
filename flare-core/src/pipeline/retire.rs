//! Takes a subscription that a caller wants gone; gives it marked as deleting, which frees its urls,
//! hides it from readers and ends its lanes. What it leaves behind is removed by a stored job.

use tracing::warn;

use super::context::Context;
use super::jobs;
use super::stage::chain;
use crate::error::Result;
use crate::model::{JobKind, RecordName, Subscription, SubscriptionId, SubscriptionStatus};
use crate::port::Replaced;

/// What became of a wish to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retired {
    Done,
    /// It was not there to be marked.
    Gone,
    /// It is not what it was when its deletion was asked for.
    Changed,
}

/// Marks a subscription as deleting, whatever it has become meanwhile; tells whether it was there
/// to be marked.
pub(crate) async fn retire(context: &Context, subscription: Subscription) -> Result<bool> {
    Ok(mark(context, subscription, false).await? == Retired::Done)
}

/// Marks a subscription as deleting, if it is still what the caller read.
pub(crate) async fn retire_exactly(
    context: &Context,
    subscription: Subscription,
) -> Result<Retired> {
    mark(context, subscription, true).await
}

async fn mark(context: &Context, subscription: Subscription, exactly: bool) -> Result<Retired> {
    let mut next = subscription;
    let marked = loop {
        if next.status == SubscriptionStatus::Deleting {
            return Ok(Retired::Gone);
        }
        let generation = next.generation;
        next.status = SubscriptionStatus::Deleting;
        next.reason = None;
        // Its lanes may write for as long as they work: the owner of their slot has to say that they
        // have ended before what they wrote is removed.
        let slot = context.slot_of(&next);
        next.moving_from.get_or_insert(slot);
        next.updated_at = context.time().await?;
        match context.repository.replace_subscription(generation, next).await? {
            Replaced::Done(marked) => break marked,
            Replaced::Conflict(newer)
                if exactly && newer.status != SubscriptionStatus::Deleting =>
            {
                return Ok(Retired::Changed);
            }
            // Changed meanwhile; deleted it is all the same.
            Replaced::Conflict(newer) => next = newer,
            Replaced::Missing => return Ok(Retired::Gone),
        }
    };
    // It is deleted. The next sweep of the lanes makes up for whatever fails now.
    if let Err(error) = remove_later(context, marked.id).await {
        warn!(error = %chain(&error), "could not ask for the removal of a subscription");
    }
    if let Err(error) = context.refresh(&marked).await {
        warn!(error = %chain(&error), "could not announce the end of a subscription");
    }
    Ok(Retired::Done)
}

/// Marks a subscription that cannot be read as deleting; tells whether it was there to be marked.
/// Where it is worked, by a node that can read it, is not known here: all are told.
pub(crate) async fn discard(context: &Context, id: SubscriptionId) -> Result<bool> {
    if !context.repository.discard_subscription(id).await? {
        return Ok(false);
    }
    context.unreadable.forget(&RecordName::Subscription(id));
    if let Err(error) = remove_later(context, id).await {
        warn!(error = %chain(&error), "could not ask for the removal of a subscription");
    }
    if let Err(error) = context.refresh_in(id, [context.slot(id, None)]).await {
        warn!(error = %chain(&error), "could not announce the end of a subscription");
    }
    Ok(true)
}

/// Asks for a deleting subscription to be removed, unless that was done; any number of times.
pub(crate) async fn remove_later(context: &Context, deleting: SubscriptionId) -> Result<()> {
    let subject = deleting.to_string();
    jobs::ask(context, JobKind::RemoveSubscription, subject, jobs::AT_ONCE).await?;
    Ok(())
}
