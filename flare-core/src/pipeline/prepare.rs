//! Takes a subscription that is stored but not yet at work; gives it activated, or removed if its
//! resource is gone. Any node may finish what another began.

use super::context::Context;
use super::jobs::{align_later, backfill};
use super::retire::retire;
use crate::error::Result;
use crate::model::{JobKind, ResourceState, Subscription, SubscriptionStatus};
use crate::port::Replaced;

/// What became of a subscription that was being prepared.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one per creation")]
pub(crate) enum Prepared {
    /// It is at work, or whatever another call made of it meanwhile.
    Ready(Subscription),
    /// Its resource is being deleted: it is gone again.
    ResourceGone,
    /// It was removed.
    Removed,
}

/// Finishes the creation of a subscription.
///
/// The deletion of a resource looks for subscriptions after marking it; we look for the mark
/// after inserting: one of us sees the other.
pub(crate) async fn prepare(context: &Context, stored: Subscription) -> Result<Prepared> {
    if !make_ready(context, &stored).await? {
        return Ok(Prepared::ResourceGone);
    }
    let generation = stored.generation;
    let mut active = stored;
    active.status = SubscriptionStatus::Active;
    active.updated_at = context.time().await?;
    Ok(match context.repository.replace_subscription(generation, active).await? {
        Replaced::Done(active) => {
            align_later(context, &active, 0).await;
            Prepared::Ready(active)
        }
        // Paused or replaced as soon as it could be seen.
        Replaced::Conflict(current) => Prepared::Ready(current),
        Replaced::Missing => Prepared::Removed,
    })
}

/// Sees to what has to be before a subscription ceases to be prepared, at work or paused: its resource is there, and
/// what it wants at creation is asked for. Tells whether it may; if its resource is gone, it goes too.
pub(crate) async fn make_ready(context: &Context, stored: &Subscription) -> Result<bool> {
    let resource = context.repository.resource(stored.resource).await?;
    if !resource.is_some_and(|resource| resource.state == ResourceState::Active) {
        // Not removed in one go: a change may have been spread to it already.
        retire(context, stored.clone()).await?;
        return Ok(false);
    }
    if stored.spec.backfill() {
        // Before it is at work: a reader that finds it active finds that this was asked for.
        backfill::begin(context, JobKind::Backfill, stored.id, None).await?;
    }
    Ok(true)
}
