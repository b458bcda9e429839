//! Takes what a host does not want any more; gives it marked, so that it is gone for everybody at
//! once. What is left of it is removed in the background, by stored jobs.

use super::flare::{Flare, changed, not_found};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    AuditAction, AuditSubject, Generation, RecordName, ResourceId, ResourceState, SubscriptionId,
};
use crate::pipeline::close::{ResourceClosed, close, close_unreadable};
use crate::pipeline::retire::{Retired, discard, retire, retire_exactly};

impl Flare {
    /// Deletes a resource that has no subscriptions and no consumers: it refuses documents from now on, and
    /// its endpoint is free again. Its documents are removed in the background.
    ///
    /// While it has some this is a conflict.
    pub async fn delete_resource(&self, id: ResourceId) -> Result<()> {
        const OPERATION: &str = "delete_resource";
        let context = self.context();
        let mut began = false;
        loop {
            let found = match context.repository.resource(id).await {
                Ok(found) => found,
                Err(error) => match error.unreadable() {
                    Some(unreadable) if !unreadable.deleted => {
                        context.note_unreadable(unreadable);
                        return self.delete_unreadable_resource(OPERATION, id).await;
                    }
                    Some(_) => None,
                    None => return Err(error),
                },
            };
            let found = match found.filter(|found| found.state != ResourceState::Deleted) {
                Some(found) => found,
                // Another node concluded what we began.
                None if began => {
                    self.tell(AuditAction::Deleted, AuditSubject::resource(id), "");
                    return Ok(());
                }
                None => return Err(not_found(OPERATION, "resource", &id)),
            };
            match close(context, &found).await? {
                ResourceClosed::Deleted => {
                    self.tell(AuditAction::Deleted, AuditSubject::resource(id), "");
                    return Ok(());
                }
                ResourceClosed::InUse { subscriptions, consumers } => {
                    return Err(in_use(OPERATION, subscriptions, consumers));
                }
                ResourceClosed::Elsewhere => began = true,
            }
        }
    }

    async fn delete_unreadable_resource(
        &self,
        operation: &'static str,
        id: ResourceId,
    ) -> Result<()> {
        match close_unreadable(self.context(), id).await? {
            ResourceClosed::Deleted => {
                self.context().unreadable.forget(&RecordName::Resource(id));
                self.tell(AuditAction::Deleted, AuditSubject::resource(id), "");
                Ok(())
            }
            ResourceClosed::InUse { subscriptions, consumers } => {
                Err(in_use(operation, subscriptions, consumers))
            }
            ResourceClosed::Elsewhere => {
                let error = Error::new(ErrorKind::Conflict, operation);
                Err(error
                    .with_detail("another call is deleting it, or creating a subscription of it"))
            }
        }
    }

    /// Deletes a subscription: it is not found any more, its urls are free again, and nothing new
    /// is sent to it. Its rows and dead letters are removed in the background. One that cannot be
    /// read is deleted like any other.
    pub async fn delete_subscription(&self, id: SubscriptionId) -> Result<()> {
        const OPERATION: &str = "delete_subscription";
        let deleted = match self.look_up(OPERATION, id).await? {
            Ok(found) => retire(self.context(), found).await?,
            Err(_) => discard(self.context(), id).await?,
        };
        match deleted {
            true => {
                self.tell(AuditAction::Deleted, AuditSubject::subscription(id), "");
                Ok(())
            }
            // Another change was faster.
            false => Err(not_found(OPERATION, "subscription", &id)),
        }
    }

    /// As [`delete_subscription`](Self::delete_subscription), if it is still at that generation; a
    /// conflict on `generation` if not.
    pub async fn delete_subscription_at(
        &self,
        id: SubscriptionId,
        generation: Generation,
    ) -> Result<()> {
        const OPERATION: &str = "delete_subscription";
        let found = self.find_subscription(OPERATION, id).await?;
        if found.generation != generation {
            return Err(changed(OPERATION));
        }
        match retire_exactly(self.context(), found).await? {
            Retired::Done => {
                self.tell(AuditAction::Deleted, AuditSubject::subscription(id), "");
                Ok(())
            }
            Retired::Gone => Err(not_found(OPERATION, "subscription", &id)),
            Retired::Changed => Err(changed(OPERATION)),
        }
    }
}

fn in_use(operation: &'static str, subscriptions: u64, consumers: usize) -> Error {
    let has = match (subscriptions, consumers) {
        (subscriptions, 0) => format!("subscriptions ({subscriptions})"),
        (0, consumers) => format!("consumers ({consumers})"),
        _ => format!("subscriptions ({subscriptions}) and consumers ({consumers})"),
    };
    let detail = format!("it has {has}: delete them first");
    Error::new(ErrorKind::Conflict, operation).with_detail(detail)
}
