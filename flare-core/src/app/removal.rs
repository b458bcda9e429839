//! Takes what a host does not want any more; gives it marked, so that it is gone for everybody at
//! once. What is left of it is removed in the background, by stored jobs.

use super::flare::{Flare, not_found};
use crate::error::Result;
use crate::model::SubscriptionId;
use crate::pipeline::retire::retire;

impl Flare {
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
}
