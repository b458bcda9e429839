//! Takes what a host does not want any more; gives it marked, so that it is gone for everybody at
//! once. What is left of it is removed in the background, by stored jobs.

use super::flare::{Flare, changed, not_found};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Generation, ResourceId, ResourceState, SubscriptionId};
use crate::pipeline::close::{Closed, close};
use crate::pipeline::retire::{Retired, retire, retire_exactly};

impl Flare {
    /// Deletes a resource that has no subscriptions: it refuses documents from now on, and its
    /// endpoint is free again. Its documents are removed in the background.
    ///
    /// While it has subscriptions this is a conflict.
    pub async fn delete_resource(&self, id: &ResourceId) -> Result<()> {
        const OPERATION: &str = "delete_resource";
        let context = self.context();
        let mut began = false;
        loop {
            let found = context.repository.resource(*id).await?;
            let found = match found.filter(|found| found.state != ResourceState::Deleted) {
                Some(found) => found,
                // Somebody else concluded what we began.
                None if began => return Ok(()),
                None => return Err(not_found(OPERATION, "resource", id)),
            };
            match close(context, &found).await? {
                Closed::Deleted => return Ok(()),
                Closed::InUse(subscriptions) => {
                    let detail =
                        format!("it has subscriptions ({subscriptions}): delete them first");
                    return Err(Error::new(ErrorKind::Conflict, OPERATION).detail(detail));
                }
                Closed::Elsewhere => began = true,
            }
        }
    }

    /// Deletes a subscription: nobody finds it any more, its urls are free again, and nothing new
    /// is sent to it. Its rows and dead letters are removed in the background.
    pub async fn delete_subscription(&self, id: &SubscriptionId) -> Result<()> {
        const OPERATION: &str = "delete_subscription";
        let found = self.find_subscription(OPERATION, id).await?;
        match retire(self.context(), found).await? {
            true => Ok(()),
            // Somebody was faster.
            false => Err(not_found(OPERATION, "subscription", id)),
        }
    }

    /// As [`delete_subscription`](Self::delete_subscription), if it is still at that generation; a
    /// conflict on `generation` if not.
    pub async fn delete_subscription_at(
        &self,
        id: &SubscriptionId,
        generation: Generation,
    ) -> Result<()> {
        const OPERATION: &str = "delete_subscription";
        let found = self.find_subscription(OPERATION, id).await?;
        if found.generation != generation {
            return Err(changed(OPERATION));
        }
        match retire_exactly(self.context(), found).await? {
            Retired::Done => Ok(()),
            Retired::Gone => Err(not_found(OPERATION, "subscription", id)),
            Retired::Changed => Err(changed(OPERATION)),
        }
    }
}
