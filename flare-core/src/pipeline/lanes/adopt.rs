//! Takes what was read of a subscription; gives each of its lanes a beginning, newer settings, or an
//! end, as it now wants to be worked.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::directory::Afresh;
use super::read::{FoundSubscription, Looked};
use super::{AGAIN, Lanes};
use crate::model::{SubscriptionId, SubscriptionStatus};
use crate::pipeline::lane::FormerLanes;
use crate::pipeline::stage::chain;
use crate::port::EpochGrant;

impl Lanes {
    /// Reads a subscription again in a while.
    pub(super) fn later(&mut self, id: SubscriptionId) {
        self.agenda.later([id], self.context.now() + AGAIN);
    }

    /// Works a subscription as it now wants to be worked.
    pub(super) fn adopt(&mut self, looked: Looked) {
        let Looked { id, found } = looked;
        match found {
            Ok(Some(found)) => self.work(found),
            Ok(None) => {
                self.slots.values_mut().for_each(|tenancy| tenancy.forget(id));
                self.directory.stop(id);
                self.leaving.remove(&id);
            }
            Err(error) => {
                warn!(subscription = %id, error = %chain(&error), "could not read it, will retry");
                self.later(id);
            }
        }
    }

    fn work(&mut self, found: FoundSubscription) {
        let FoundSubscription { subscription, resource, drawn } = found;
        let (id, slot) = (subscription.id, self.context.slot_of(&subscription));
        let works = self.slots.get(&slot).filter(|it| it.works());
        if works.is_some_and(|it| !it.listens) {
            // Somebody has this reserved slot now.
            self.listen(slot, Duration::ZERO);
        }
        if let Some(from) = subscription.moving_from {
            self.leave(&subscription, from);
            return;
        }
        self.leaving.remove(&id);
        if subscription.status != SubscriptionStatus::Active {
            self.directory.stop(id);
            return;
        }
        if self.directory.has_other_than(id, subscription.spec.delivery().lanes(), slot) {
            // Each lane has other documents now: all end before any starts.
            self.directory.stop(id);
            self.awaited.insert(id);
            return;
        }
        let Some(tenancy) = self.slots.get(&slot).filter(|it| it.works()) else { return };
        let moved = tenancy.grant_of(id).term.epoch <= subscription.least_epoch;
        self.directory.update(&subscription);
        let missing = self.directory.missing(&subscription);
        if missing.is_empty() {
            return;
        }
        let afresh = match moved {
            true => Some(Afresh::Moved),
            false => self.directory.afresh(&subscription),
        };
        match resource {
            Some(resource) if self.renew(id, slot, afresh, drawn) => {
                let moved = matches!(afresh, Some(Afresh::Renumbered | Afresh::Moved));
                let former = FormerLanes::default();
                for lane in missing {
                    let resource = Arc::clone(&resource);
                    self.start(lane, &subscription, resource, moved, former.clone());
                }
            }
            // One ended since it was read.
            _ => self.later(id),
        }
    }

    /// Has the lanes of a subscription worked under the epoch that was drawn for them, if they need
    /// one of their own; tells whether they may start.
    ///
    /// With the epoch of the lanes before them, a write of those that is still on its way could
    /// undo one of theirs, and what one of those had sent when it failed would be taken for known.
    fn renew(
        &mut self,
        id: SubscriptionId,
        slot: u32,
        afresh: Option<Afresh>,
        drawn: Option<EpochGrant>,
    ) -> bool {
        let Some(afresh) = afresh else { return true };
        let Some(tenancy) = self.slots.get_mut(&slot) else { return false };
        // Trusted after it was drawn: whoever has the slot next draws a greater one.
        match drawn.filter(|_| tenancy.grant.term.is_trusted(slot, &*self.context.clock)) {
            Some(drawn) => tenancy.renew(&self.context, id, drawn, afresh),
            None => false,
        }
    }
}
