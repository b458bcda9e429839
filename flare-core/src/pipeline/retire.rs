//! Takes a subscription somebody wants gone; gives it marked as deleting, which frees its urls,
//! hides it from readers and ends its lanes. What it leaves behind is removed by a stored job.

use tracing::warn;

use super::context::Context;
use super::jobs;
use super::stage::chain;
use crate::error::Result;
use crate::model::{JobKind, Subscription, SubscriptionStatus};
use crate::port::Replaced;

/// Marks a subscription as deleting; tells whether it was there to be marked.
pub(crate) async fn retire(context: &Context, subscription: Subscription) -> Result<bool> {
    let mut next = subscription;
    let marked = loop {
        if next.status == SubscriptionStatus::Deleting {
            return Ok(false);
        }
        let generation = next.generation;
        next.status = SubscriptionStatus::Deleting;
        next.reason = None;
        next.updated_at = context.now();
        match context.repository.replace_subscription(generation, next).await? {
            Replaced::Done(marked) => break marked,
            // Changed meanwhile; deleted it is all the same.
            Replaced::Conflict(newer) => next = newer,
            Replaced::Missing => return Ok(false),
        }
    };
    // It is deleted. The next sweep of the lanes makes up for whatever fails now.
    if let Err(error) = remove_later(context, &marked).await {
        warn!(error = %chain(&error), "could not ask for the removal of a subscription");
    }
    if let Err(error) = context.refresh(marked.id).await {
        warn!(error = %chain(&error), "could not announce the end of a subscription");
    }
    Ok(true)
}

/// Asks for a deleting subscription to be removed, unless somebody has; any number of times.
pub(crate) async fn remove_later(context: &Context, deleting: &Subscription) -> Result<()> {
    let subject = deleting.id.to_string();
    jobs::ask(context, JobKind::RemoveSubscription, subject, jobs::AT_ONCE).await?;
    Ok(())
}
