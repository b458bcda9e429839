//! Takes a subscription that is deleting; gives it removed, with its rows, dead letters, lanes'
//! states and queues. Twice over its rows: a spread that was under way may have made some anew.

use super::held::{Ended, Held, Next};
use super::queues;
use crate::model::{SubscriptionId, SubscriptionStatus};

/// Has a turn at removing a subscription.
pub(super) async fn remove(held: &mut Held<'_>) -> Result<Next, Ended> {
    let id: SubscriptionId = held.subject()?;
    let repository = &held.context().repository;
    let found = repository.subscription(id).await?;
    if found.as_ref().is_some_and(|found| found.status != SubscriptionStatus::Deleting) {
        // Nobody deleted it: what is in use is never removed, whoever asked.
        return Ok(Next::Done);
    }
    if !held.drain(|limit| repository.remove_rows(id, limit)).await? {
        return Ok(Next::GoOn);
    }
    if let Some(again) = held.again() {
        return Ok(again);
    }
    if let Some(deleting) = found {
        // Last of all: a spread that was under way may have made them anew.
        queues::remove(held, &deleting).await?;
    }
    repository.remove_subscription(id).await?;
    Ok(Next::Done)
}
