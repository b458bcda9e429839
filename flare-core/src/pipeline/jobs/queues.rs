//! Takes a subscription whose lanes have queues of their own; gives it a queue for each of them, and
//! none for lanes it had before. Where lanes share the queues of their slots there is nothing to do:
//! what an isolated time left behind is shown and removed by a cleanup.

use futures::TryStreamExt;
use futures::future::ready;
use tracing::warn;

use super::held::{ClaimedJob, Ended, Next};
use super::{AT_ONCE, ask_from, remove_if_gone};
use crate::error::Result;
use crate::model::{JobKind, LaneId, Placement, Subscription, SubscriptionId, SubscriptionStatus};
use crate::pipeline::context::Context;
use crate::pipeline::stage::chain;
use crate::port::QueueName;

/// Says, in the cursor of a job, that it is its second pass.
const AGAIN: &str = " again";
/// Queues made or deleted before the job is kept for another while.
const AT_A_TIME: usize = 10;

/// Asks for the queues of a subscription that is new, or had so many lanes before. The caller who changed
/// it does not wait: a lane whose queue is missing makes it when it first uses it.
pub(crate) async fn align_later(context: &Context, subscription: &Subscription, former: u16) {
    if context.settings.placement != Placement::Isolated {
        return;
    }
    let (subject, cursor) = (subscription.id.to_string(), former.to_string());
    if let Err(error) = ask_from(context, JobKind::Queue, subject, Some(cursor), AT_ONCE).await {
        warn!(subscription = %subscription.id, error = %chain(&error), "could not ask for its queues");
    }
}

/// Has a turn at bringing the queues of a subscription in line with its lanes.
pub(super) async fn align(held: &mut ClaimedJob<'_>) -> Result<Next, Ended> {
    let id: SubscriptionId = held.subject()?;
    let Some(lanes) = lanes_of(held.context(), id).await? else {
        return Ok(Next::Done);
    };
    let queue = &held.context().queue;
    for (done, shard) in (0..lanes).enumerate() {
        queue.create(&queue_of(id, shard)).await?;
        keep_now_and_then(held, done).await?;
    }
    let had = had(held, id).await?;
    delete(held, id, lanes, had).await?;
    let second = held.job().cursor.as_deref().is_some_and(|cursor| cursor.ends_with(AGAIN));
    // A caller who changed their number meanwhile found this job and asked for no other.
    match lanes_of(held.context(), id).await? {
        // The job that removes it may have looked for queues before all of these were made.
        None => {
            delete(held, id, 0, had.max(lanes)).await?;
            Ok(Next::Done)
        }
        Some(now) if now != lanes => {
            held.keep_at(Some(had.max(lanes).to_string())).await?;
            Ok(Next::GoOn)
        }
        // A lane that still listened, or a spread that knew it, may have made its queue again.
        Some(_) if had > lanes && !second => {
            let after = held.context().settings.task_lifetime;
            Ok(Next::Later { cursor: Some(format!("{had}{AGAIN}")), after })
        }
        Some(_) => Ok(Next::Done),
    }
}

/// Deletes the queues of a subscription that is being removed: all there are, for no record has
/// every number of lanes it ever had.
pub(super) async fn remove(held: &mut ClaimedJob<'_>, id: SubscriptionId) -> Result<(), Ended> {
    if held.context().settings.placement != Placement::Isolated {
        return Ok(());
    }
    let queue = &held.context().queue;
    let its = |queue: &QueueName| matches!(queue, QueueName::Lane(lane) if lane.subscription == id);
    let left: Vec<QueueName> =
        queue.list().try_filter(|queue| ready(its(queue))).try_collect().await?;
    for (done, left) in left.iter().enumerate() {
        queue.delete(left).await?;
        keep_now_and_then(held, done).await?;
    }
    Ok(())
}

/// Has the queues removed of subscriptions that are gone: a worker that misses the queue of a lane makes it, and may
/// die before it sees that the subscription was removed meanwhile.
pub(super) async fn clear_strays(held: &mut ClaimedJob<'_>) -> Result<(), Ended> {
    let context = held.context();
    if context.settings.placement != Placement::Isolated {
        return Ok(());
    }
    let mut queues = context.queue.list();
    let (mut last, mut looked_at) = (None, 0);
    while let Some(queue) = queues.try_next().await? {
        let QueueName::Lane(LaneId { subscription: id, .. }) = queue else { continue };
        if last.replace(id) == Some(id) {
            continue;
        }
        remove_if_gone(context, id).await?;
        keep_now_and_then(held, looked_at).await?;
        looked_at += 1;
    }
    Ok(())
}

/// How many lanes a subscription has that may have queues; `None` if it is none of ours to equip.
async fn lanes_of(context: &Context, id: SubscriptionId) -> Result<Option<u16>> {
    if context.settings.placement != Placement::Isolated {
        return Ok(None);
    }
    let found = context.if_readable(context.repository.subscription(id).await)?.flatten();
    // The queues of one that is deleting go with it.
    let found = found.filter(|found| found.status != SubscriptionStatus::Deleting);
    Ok(found.map(|found| found.spec.delivery().lanes()))
}

/// How many lanes a subscription may have had: by what the job was told, and by what its lanes
/// remembered.
async fn had(held: &ClaimedJob<'_>, id: SubscriptionId) -> Result<u16> {
    let cursor = held.job().cursor.as_deref().unwrap_or_default();
    let told = cursor.trim_end_matches(AGAIN).parse().unwrap_or(0);
    let states = held.context().repository.lanes(id).await?;
    let remembered = states.items.iter().map(|state| state.lane.shard.saturating_add(1)).max();
    Ok(remembered.unwrap_or(0).max(told))
}

/// Deletes the queues of the lanes from one up to, but not including, another.
async fn delete(
    held: &mut ClaimedJob<'_>,
    id: SubscriptionId,
    from: u16,
    to: u16,
) -> Result<(), Ended> {
    let queue = &held.context().queue;
    for (done, shard) in (from..to).enumerate() {
        queue.delete(&queue_of(id, shard)).await?;
        keep_now_and_then(held, done).await?;
    }
    Ok(())
}

async fn keep_now_and_then(held: &mut ClaimedJob<'_>, done: usize) -> Result<(), Ended> {
    match (done + 1).is_multiple_of(AT_A_TIME) {
        true => held.keep().await,
        false => Ok(()),
    }
}

fn queue_of(subscription: SubscriptionId, shard: u16) -> QueueName {
    QueueName::Lane(LaneId::new(subscription, shard))
}
