//! Takes an id; gives the subscription or resource of that id, if readers may see it, or what is known
//! of one that cannot be read.

use super::flare::{Flare, not_found};
use crate::error::{Error, Result};
use crate::model::{
    Resource, ResourceId, ResourceState, Subscription, SubscriptionId, SubscriptionStatus,
    Unreadable,
};

impl Flare {
    /// The subscription; one that is deleting is not there any more, one that cannot be read is an
    /// error that says so.
    pub(super) async fn find_subscription(
        &self,
        operation: &'static str,
        id: SubscriptionId,
    ) -> Result<Subscription> {
        let found = self.look_up(operation, id).await?;
        found.map_err(|unreadable| Error::of_record(operation, unreadable))
    }

    /// The subscription, or what is known of it if it cannot be read.
    pub(super) async fn look_up(
        &self,
        operation: &'static str,
        id: SubscriptionId,
    ) -> Result<Result<Subscription, Unreadable>> {
        let found = match self.context().repository.subscription(id).await {
            Ok(found) => found.filter(|it| it.status != SubscriptionStatus::Deleting).map(Ok),
            Err(error) => match error.unreadable() {
                Some(unreadable) => {
                    self.context().note_unreadable(unreadable);
                    Some(Err(unreadable.clone())).filter(|_| !unreadable.deleted)
                }
                None => return Err(error),
            },
        };
        found.ok_or_else(|| not_found(operation, "subscription", &id))
    }

    /// The resource, if it is active.
    pub(super) async fn active_resource(
        &self,
        operation: &'static str,
        id: ResourceId,
    ) -> Result<Resource> {
        let found = self.context().repository.resource(id).await;
        if let Err(error) = &found
            && let Some(unreadable) = error.unreadable()
        {
            self.context().note_unreadable(unreadable);
            if unreadable.deleted {
                return Err(not_found(operation, "resource", &id));
            }
        }
        found?
            .filter(|resource| resource.state == ResourceState::Active)
            .ok_or_else(|| not_found(operation, "resource", &id))
    }

    /// Whether there is such a resource, readable or not.
    pub(super) async fn known_resource(
        &self,
        operation: &'static str,
        id: ResourceId,
    ) -> Result<()> {
        match self.active_resource(operation, id).await {
            Err(error) if error.unreadable().is_none() => Err(error),
            _ => Ok(()),
        }
    }
}
