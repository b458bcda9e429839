//! Takes a resource that a caller wants gone; gives it deleted, or active again if a subscription or a
//! consumer forbids it. The creation of either looks for the mark after inserting it; we look for them
//! after setting the mark: one of us sees the other.

use std::time::Duration;

use futures::StreamExt;

use super::context::Context;
use super::jobs;
use crate::error::Result;
use crate::model::{ConsumerId, JobKind, RecordName, Resource, ResourceId, ResourceState};
use crate::port::Page;

/// How long the call that began a deletion may take to conclude it before a job does.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the deletion of a resource ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResourceClosed {
    /// It is deleted: its endpoint is free, and it refuses documents.
    Deleted,
    /// It stays: it has some of these.
    InUse { subscriptions: u64, consumers: usize },
    /// Another call concluded it, one way or the other.
    Elsewhere,
}

/// Deletes a resource that was read as active or deleting.
pub(crate) async fn close(context: &Context, resource: &Resource) -> Result<ResourceClosed> {
    let due = context.time().await? + PATIENCE;
    let ask = || jobs::ask(context, JobKind::RemoveResource, resource.id.to_string(), due);
    // Before the mark: should we die, the job concludes what we began.
    let fresh = ask().await?;
    if resource.state == ResourceState::Active {
        let (from, to) = (ResourceState::Active, ResourceState::Deleting);
        if !context.repository.move_resource(resource.id, from, to).await? {
            return Ok(ResourceClosed::Elsewhere);
        }
    }
    if !fresh {
        // A job of an earlier deletion may have found it active, and ended before the mark.
        ask().await?;
    }
    conclude(context, resource.id).await
}

/// Deletes a resource that cannot be read, and so may be active or deleting.
pub(crate) async fn close_unreadable(context: &Context, id: ResourceId) -> Result<ResourceClosed> {
    let due = context.time().await? + PATIENCE;
    jobs::ask(context, JobKind::RemoveResource, id.to_string(), due).await?;
    let (from, to) = (ResourceState::Active, ResourceState::Deleting);
    // The node that marked it before may have died: concluding it is then ours.
    context.repository.move_resource(id, from, to).await?;
    conclude(context, id).await
}

/// Concludes the deletion of a resource that is marked.
pub(crate) async fn conclude(context: &Context, id: ResourceId) -> Result<ResourceClosed> {
    let subscriptions = context.repository.list_subscriptions(id, Page::new(1, 0)).await?.total;
    let consumers = consumers_of(context, id).await?.len();
    let (to, closed) = match (subscriptions, consumers) {
        (0, 0) => (ResourceState::Deleted, ResourceClosed::Deleted),
        _ => (ResourceState::Active, ResourceClosed::InUse { subscriptions, consumers }),
    };
    let moved = context.repository.move_resource(id, ResourceState::Deleting, to).await?;
    Ok(if moved { closed } else { ResourceClosed::Elsewhere })
}

/// The consumers of a resource; of those that cannot be read, the ones that are known to be of it.
pub(crate) async fn consumers_of(context: &Context, id: ResourceId) -> Result<Vec<ConsumerId>> {
    let mut all = context.repository.scan_consumers(None);
    let mut found = Vec::new();
    while let Some(read) = all.next().await {
        match read {
            Ok(consumer) if consumer.resource == id => found.push(consumer.id),
            Ok(_) => {}
            Err(error) => match error.unreadable() {
                Some(unreadable) => match unreadable.record {
                    RecordName::Consumer(consumer) if unreadable.resource == Some(id) => {
                        found.push(consumer);
                    }
                    _ => {}
                },
                None => return Err(error),
            },
        }
    }
    Ok(found)
}
