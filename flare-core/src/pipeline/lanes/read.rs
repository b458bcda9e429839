//! Takes news of a subscription, or slots whose subscriptions are wanted; gives what the stores know,
//! with what is left to do for those that were left half-way. Starts and stops nothing itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::directory::Directory;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    Epoch, RecordName, Resource, ResourceId, Subscription, SubscriptionId, SubscriptionStatus,
};
use crate::ownership::Slots;
use crate::pipeline::context::Context;
use crate::pipeline::prepare::{Prepared, prepare};
use crate::pipeline::retire::remove_later;
use crate::port::{EpochGrant, SlotQuery};

/// Subscriptions read at a time; in between there is time for news.
const PAGE: usize = 500;
/// After this long nobody is creating a subscription any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// What was read.
pub(super) enum Read {
    One(Looked),
    Page {
        looked: Vec<Looked>,
        /// How far it came; at the end there is nothing after it.
        after: Option<SubscriptionId>,
        /// Why it came no further.
        stopped: Option<Error>,
    },
}

/// What a look at one subscription came to.
pub(super) struct Looked {
    pub(super) id: SubscriptionId,
    /// Nothing, if it is gone.
    pub(super) found: Result<Option<FoundSubscription>>,
}

/// A subscription as it is stored.
pub(super) struct FoundSubscription {
    pub(super) subscription: Arc<Subscription>,
    /// Where lanes have to be started.
    pub(super) resource: Option<Arc<Resource>>,
    /// Where those may need an epoch of their own.
    pub(super) drawn: Option<EpochGrant>,
}

/// Reads what lanes have to know.
pub(super) struct Reader {
    pub(super) context: Arc<Context>,
    pub(super) directory: Arc<Directory>,
}

impl Reader {
    /// Reads one subscription again.
    pub(super) async fn one(self, id: SubscriptionId) -> Read {
        let mut resources = HashMap::new();
        let found = match self.context.repository.subscription(id).await {
            Ok(Some(subscription)) => self.look_at(subscription, &mut resources).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        Read::One(Looked { id, found: self.without_unreadable(found).await })
    }

    /// Reads the next subscriptions of some slots, after one of them.
    pub(super) async fn page(self, slots: Slots, after: Option<SubscriptionId>) -> Read {
        let query = SlotQuery::new(slots.iter(), self.context.slots);
        let mut resources = HashMap::new();
        let mut looked = Vec::new();
        let mut last = after;
        let mut all = self.context.repository.subscriptions_in(query, after);
        // Those that have no name take no place in a page: the next one could not begin after them.
        let mut seen = 0;
        while seen < PAGE
            && let Some(read) = all.next().await
        {
            let (id, found) = match read {
                Ok(subscription) => {
                    (seen, last) = (seen + 1, Some(subscription.id));
                    // Its hash may be that of other slots, too, and a reserved slot may have it.
                    let its = [Some(self.context.slot_of(&subscription)), subscription.moving_from];
                    if !its.into_iter().flatten().any(|slot| slots.contains(slot)) {
                        continue;
                    }
                    (subscription.id, self.look_at(subscription, &mut resources).await)
                }
                Err(error) => match error.unreadable().map(|unreadable| &unreadable.record) {
                    Some(RecordName::Subscription(id)) => {
                        (seen, last) = (seen + 1, Some(*id));
                        (*id, Err(error))
                    }
                    Some(_) => {
                        error
                            .unreadable()
                            .into_iter()
                            .for_each(|it| self.context.note_unreadable(it));
                        continue;
                    }
                    None => return Read::Page { looked, after: last, stopped: Some(error) },
                },
            };
            looked.push(Looked { id, found: self.without_unreadable(found).await });
        }
        let after = last.filter(|_| seen == PAGE);
        Read::Page { looked, after, stopped: None }
    }

    /// What was found, where a record that cannot be read is as good as none: nothing is sent for
    /// that subscription by this node, and lanes it had end. The next sweep looks again.
    async fn without_unreadable(
        &self,
        found: Result<Option<FoundSubscription>>,
    ) -> Result<Option<FoundSubscription>> {
        let Err(error) = &found else { return found };
        let Some(unreadable) = error.unreadable() else { return found };
        self.context.note_unreadable(unreadable);
        if let RecordName::Subscription(id) = unreadable.record
            && unreadable.deleted
        {
            // Whoever marked it may have died before asking for this.
            remove_later(&self.context, id).await?;
        }
        Ok(None)
    }

    /// Does for a subscription what somebody left undone, and reads what its lanes need.
    async fn look_at(
        &self,
        subscription: Subscription,
        resources: &mut HashMap<ResourceId, Arc<Resource>>,
    ) -> Result<Option<FoundSubscription>> {
        let Some(subscription) = self.finish_creation(subscription).await? else {
            return Ok(None);
        };
        if subscription.status == SubscriptionStatus::Deleting {
            // Whoever marked it may have died before asking for this.
            remove_later(&self.context, subscription.id).await?;
        }
        let active = subscription.status == SubscriptionStatus::Active;
        let (mut resource, mut drawn) = (None, None);
        if active && !self.directory.missing(&subscription).is_empty() {
            resource = Some(self.resource(&subscription, resources).await?);
            let moved = subscription.least_epoch > Epoch::ZERO;
            if moved || self.directory.afresh(&subscription).is_some() {
                drawn = Some(self.context.repository.next_epoch().await?);
            }
        }
        Ok(Some(FoundSubscription { subscription: Arc::new(subscription), resource, drawn }))
    }

    /// Goes on with a creation that somebody began and did not finish in good time.
    async fn finish_creation(&self, subscription: Subscription) -> Result<Option<Subscription>> {
        let age = self.context.now() - subscription.created_at;
        if subscription.status != SubscriptionStatus::Preparing || age < ABANDONED {
            return Ok(Some(subscription));
        }
        Ok(match prepare(&self.context, subscription).await? {
            Prepared::Ready(subscription) => Some(subscription),
            Prepared::ResourceGone | Prepared::Removed => None,
        })
    }

    async fn resource(
        &self,
        subscription: &Subscription,
        known: &mut HashMap<ResourceId, Arc<Resource>>,
    ) -> Result<Arc<Resource>> {
        if let Some(resource) = known.get(&subscription.resource) {
            return Ok(Arc::clone(resource));
        }
        let resource = self.context.repository.resource(subscription.resource).await?;
        let resource = resource.map(Arc::new).ok_or_else(|| {
            let detail = format!("subscription {} has no resource", subscription.id);
            Error::new(ErrorKind::Corrupt, "adopt").with_detail(detail)
        })?;
        known.insert(subscription.resource, Arc::clone(&resource));
        Ok(resource)
    }
}
