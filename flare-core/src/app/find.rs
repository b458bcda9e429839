//! Takes an id; gives the subscription of that id, if readers may see it.

use super::flare::{Flare, not_found};
use crate::error::Result;
use crate::model::{Subscription, SubscriptionId, SubscriptionStatus};

impl Flare {
    /// The subscription; one that is deleting is not there any more.
    pub(super) async fn find_subscription(
        &self,
        operation: &'static str,
        id: &SubscriptionId,
    ) -> Result<Subscription> {
        let found = self.context().repository.subscription(*id).await?;
        found
            .filter(|found| found.status != SubscriptionStatus::Deleting)
            .ok_or_else(|| not_found(operation, "subscription", id))
    }
}
