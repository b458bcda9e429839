//! Takes what was read of a subscription; gives each of its lanes a courier, newer settings, or an
//! end, as it now wants to be worked.

use std::sync::Arc;

use tracing::warn;

use super::read::{Found, Looked};
use super::tenancy::Tenancy;
use super::{AGAIN, Lanes};
use crate::model::{Resource, Subscription, SubscriptionId, SubscriptionStatus};
use crate::pipeline::stage::chain;

impl Lanes {
    /// Reads a subscription again in a while.
    pub(super) fn later(&mut self, id: SubscriptionId) {
        self.agenda.later([id], self.context.now() + AGAIN);
    }

    /// Works a subscription as it now wants to be worked.
    pub(super) fn adopt(&mut self, looked: Looked) {
        let Looked { id, found } = looked;
        if !self.slots.get(&self.context.slot(id)).is_some_and(Tenancy::works) {
            return;
        }
        match found {
            Ok(Some(Found { subscription, resource })) => self.work(&subscription, resource),
            Ok(None) => self.directory.stop(id),
            Err(error) => {
                warn!(subscription = %id, error = %chain(&error), "could not read it, will retry");
                self.later(id);
            }
        }
    }

    fn work(&mut self, subscription: &Arc<Subscription>, resource: Option<Arc<Resource>>) {
        let lanes = subscription.spec.delivery().lanes();
        if subscription.status != SubscriptionStatus::Active
            // Each lane has other documents now: all end before any starts.
            || self.directory.has_other_than(subscription.id, lanes)
        {
            self.directory.stop(subscription.id);
            return;
        }
        self.directory.update(subscription);
        let missing = self.directory.missing(subscription);
        match resource {
            Some(resource) => {
                for lane in missing {
                    self.start(lane, subscription, Arc::clone(&resource));
                }
            }
            // One ended since it was read.
            None if !missing.is_empty() => self.later(subscription.id),
            None => {}
        }
    }
}
