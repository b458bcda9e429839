//! Takes a subscription that is deleting; gives it removed, with its rows, dead letters, lanes'
//! states and queues, once its lanes have ended. Twice over its rows: a spread that was under way may
//! have made some anew.

use std::time::Duration;

use super::held::{ClaimedJob, Ended, Next};
use super::queues;
use crate::model::{SubscriptionId, SubscriptionStatus};

/// How soon to see again whether its lanes have ended. Their owner is told of the deletion, and finds
/// it by a sweep if that gets lost.
const STILL_WORKED: Duration = Duration::from_secs(5);

/// Has a turn at removing a subscription.
pub(super) async fn remove(held: &mut ClaimedJob<'_>) -> Result<Next, Ended> {
    let id: SubscriptionId = held.subject()?;
    let repository = &held.context().repository;
    let found = repository.subscription(id).await;
    let deleted = match &found {
        Ok(found) => found.as_ref().is_none_or(|it| it.status == SubscriptionStatus::Deleting),
        // That it is deleted can be read of most that cannot be read.
        Err(error) => match error.unreadable() {
            Some(unreadable) => unreadable.deleted,
            None => return Err(error.clone().into()),
        },
    };
    if !deleted {
        // It was never deleted: what is in use is not removed, whatever the job says.
        return Ok(Next::Done);
    }
    if !held.drain(|limit| repository.remove_rows(id, limit)).await? {
        return Ok(Next::GoOn);
    }
    if found.ok().flatten().is_some_and(|found| found.moving_from.is_some()) {
        // A lane that works stores its state, and has its queue made again if it is missing.
        return Ok(Next::Later { cursor: None, after: STILL_WORKED });
    }
    if let Some(again) = held.again() {
        return Ok(again);
    }
    // Last of all: a spread that was under way may have made them anew.
    queues::remove(held, id).await?;
    repository.remove_subscription(id).await?;
    Ok(Next::Done)
}
