//! Reads subscriptions from the stores, one that changed or those of some slots, and finishes what was left
//! half-way of them. Starts and stops nothing itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tracing::warn;

use super::machine::{LanesEvent, PreparedLanes, ReadSubscription, UnpreparedLanes};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    RecordName, Resource, ResourceId, Subscription, SubscriptionId, SubscriptionStatus, Unreadable,
};
use crate::ownership::{Released, Slots, Term};
use crate::pipeline::context::Context;
use crate::pipeline::prepare::{Prepared, prepare};
use crate::pipeline::retire::remove_later;
use crate::pipeline::stage::chain;
use crate::port::SlotQuery;

/// Subscriptions read at a time; in between there is time for changes.
const PAGE: usize = 500;
/// After this long a creation that is not finished was given up.
const ABANDONED: Duration = Duration::from_secs(60);

/// A subscription as it is stored, and what its lanes need to start.
type FoundLanes = (Arc<Subscription>, Option<PreparedLanes>);
/// What the machine of the lanes is told.
type ReadEvent = LanesEvent<Term, Released>;

/// Reads what lanes have to know.
pub(super) struct Reader {
    pub(super) context: Arc<Context>,
}

impl Reader {
    /// Reads one subscription again.
    pub(super) async fn one(self, id: SubscriptionId) -> ReadEvent {
        let found = match self.context.repository.subscription(id).await {
            Ok(Some(subscription)) => self.finish(subscription).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        LanesEvent::Read(vec![self.read(id, found).await])
    }

    /// Reads the next subscriptions of some slots, after one of them.
    pub(super) async fn page(self, slots: Slots, after: Option<SubscriptionId>) -> ReadEvent {
        let query = SlotQuery::new(slots.iter(), self.context.slots);
        let mut read = Vec::new();
        let mut last = after;
        let mut all = self.context.repository.subscriptions_in(query, after);
        // Those that have no name take no place in a page: the next one could not begin after them.
        let mut seen = 0;
        while seen < PAGE
            && let Some(next) = all.next().await
        {
            let (id, found) = match next {
                Ok(subscription) => {
                    (seen, last) = (seen + 1, Some(subscription.id));
                    // Its hash may be that of other slots, too, and a reserved slot may have it.
                    let its = [Some(self.context.slot_of(&subscription)), subscription.moving_from];
                    if !its.into_iter().flatten().any(|slot| slots.contains(slot)) {
                        continue;
                    }
                    (subscription.id, self.finish(subscription).await)
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
                    None => {
                        let error = chain(&error);
                        warn!(%error, "could not read the subscriptions, will retry");
                        return LanesEvent::PageRead { read, after: last, failed: true };
                    }
                },
            };
            read.push(self.read(id, found).await);
        }
        let after = last.filter(|_| seen == PAGE);
        LanesEvent::PageRead { read, after, failed: false }
    }

    /// Reads what the lanes of subscriptions need to start.
    pub(super) async fn prepare(self, unprepared: Vec<UnpreparedLanes>) -> ReadEvent {
        let mut resources = HashMap::new();
        let mut read = Vec::with_capacity(unprepared.len());
        for UnpreparedLanes { subscription, draws } in unprepared {
            let id = subscription.id;
            let prepared = self.prepare_one(&subscription, draws, &mut resources).await;
            let found = prepared.map(|prepared| Some((subscription, Some(prepared))));
            read.push(self.read(id, found).await);
        }
        LanesEvent::Read(read)
    }

    async fn prepare_one(
        &self,
        subscription: &Subscription,
        draws: bool,
        resources: &mut HashMap<ResourceId, Arc<Resource>>,
    ) -> Result<PreparedLanes> {
        let resource = self.resource(subscription, resources).await?;
        let drawn = match draws {
            true => Some(self.context.repository.next_epoch().await?),
            false => None,
        };
        Ok(PreparedLanes { resource, drawn })
    }

    /// What reading came to. For one that cannot be read this node sends nothing; the next sweep looks again.
    async fn read(
        &self,
        id: SubscriptionId,
        found: Result<Option<FoundLanes>>,
    ) -> ReadSubscription {
        let error = match found {
            Ok(Some((subscription, prepared))) => {
                return ReadSubscription::Found { subscription, prepared };
            }
            Ok(None) => return ReadSubscription::Gone(id),
            Err(error) => error,
        };
        let passed_over = match error.unreadable() {
            Some(unreadable) => self.pass_over(unreadable).await,
            None => Err(error),
        };
        match passed_over {
            Ok(()) => ReadSubscription::Unreadable(id),
            Err(error) => {
                warn!(subscription = %id, error = %chain(&error), "could not read it, will retry");
                ReadSubscription::Failed(id)
            }
        }
    }

    async fn pass_over(&self, unreadable: &Unreadable) -> Result<()> {
        self.context.note_unreadable(unreadable);
        if let RecordName::Subscription(id) = unreadable.record
            && unreadable.deleted
        {
            // The node that marked it may have died before asking for this.
            remove_later(&self.context, id).await?;
        }
        Ok(())
    }

    /// Does for a subscription what its creator or remover left undone.
    async fn finish(&self, subscription: Subscription) -> Result<Option<FoundLanes>> {
        let Some(subscription) = self.finish_creation(subscription).await? else {
            return Ok(None);
        };
        if subscription.status == SubscriptionStatus::Deleting {
            // The node that marked it may have died before asking for this.
            remove_later(&self.context, subscription.id).await?;
        }
        Ok(Some((Arc::new(subscription), None)))
    }

    /// Goes on with a creation that was begun and not finished in good time.
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
