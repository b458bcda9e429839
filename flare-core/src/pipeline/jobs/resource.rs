//! Takes a resource whose deletion began; gives it removed with its documents, unless the caller
//! who began it backed out. Twice over its documents: a put that was under way may have stored one.

use super::held::{ClaimedJob, Ended, Next};
use crate::error::Error;
use crate::model::{RecordName, ResourceId, ResourceState};
use crate::pipeline::close::{ResourceClosed, conclude, consumers_of};
use crate::pipeline::retire::{discard, retire};
use crate::port::Page;

/// Has a turn at removing a resource.
pub(super) async fn remove(held: &mut ClaimedJob<'_>) -> Result<Next, Ended> {
    let id: ResourceId = held.subject()?;
    let repository = &held.context().repository;
    let state = match repository.resource(id).await {
        Ok(found) => found.map(|found| found.state),
        Err(error) => match error.unreadable() {
            Some(unreadable) if unreadable.deleted => Some(ResourceState::Deleted),
            // Active or deleting: only of the latter anything can be concluded.
            Some(_) => match conclude(held.context(), id).await? {
                ResourceClosed::Deleted => Some(ResourceState::Deleted),
                ResourceClosed::InUse { .. } | ResourceClosed::Elsewhere => return Ok(Next::Done),
            },
            None => return Err(error.into()),
        },
    };
    match state {
        // The caller who wanted it deleted found subscriptions or consumers.
        Some(ResourceState::Active) => return Ok(Next::Done),
        Some(ResourceState::Deleting) => match conclude(held.context(), id).await? {
            ResourceClosed::Deleted => {}
            ResourceClosed::InUse { .. } => return Ok(Next::Done),
            ResourceClosed::Elsewhere => return Ok(Next::GoOn),
        },
        Some(ResourceState::Deleted) | None => {}
    }
    evict(held, id).await?;
    if !held.drain(|limit| repository.remove_documents(id, limit)).await? {
        return Ok(Next::GoOn);
    }
    if let Some(again) = held.again() {
        return Ok(again);
    }
    repository.remove_resource(id).await?;
    Ok(Next::Done)
}

/// Where several deletions crossed, one may have concluded what another had called off, and a
/// subscription or a consumer slipped in between: there is nothing left that it could be told of, or fill.
async fn evict(held: &mut ClaimedJob<'_>, id: ResourceId) -> Result<(), Ended> {
    let context = held.context();
    for consumer in consumers_of(context, id).await? {
        context.repository.remove_consumer(consumer, None).await?;
        context.refresh_consumer(consumer).await;
    }
    let page = Page::new(u32::try_from(context.batch_limit()).unwrap_or(u32::MAX), 0);
    loop {
        let found = context.repository.list_subscriptions(id, page).await?;
        if found.items.is_empty() && found.unreadable.is_empty() {
            return Ok(());
        }
        for subscription in found.items {
            retire(context, subscription).await?;
        }
        for unreadable in found.unreadable {
            match unreadable.record {
                RecordName::Subscription(id) => discard(context, id).await?,
                // Without a name nothing can be done to it.
                _ => return Err(Error::of_record("evict", unreadable).into()),
            };
        }
        held.keep().await?;
    }
}
