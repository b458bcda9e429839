//! Takes a subscription that is too much for its neighbours; gives it a slot of its own, and a slot to a
//! node of the operator's choice. The lanes move by themselves (`pipeline/lanes/leave.rs`).

use tracing::warn;

use super::flare::Flare;
use super::subscriptions::Swapped;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Subscription, SubscriptionId, SubscriptionStatus};
use crate::pipeline::stage::chain;

/// Others that may be faster before it is given up.
const TRIES: usize = 64;

impl Flare {
    /// Gives a subscription a slot of its own, which no other shares, and tells which: one of
    /// [`Settings::pinned_slots`](crate::pipeline::Settings::pinned_slots), a conflict on `slot` if
    /// none is free. Its lanes finish what is in flight, then start in the new slot; nothing is
    /// lost or sent twice by that. One that has such a slot keeps it.
    pub async fn pin(&self, id: SubscriptionId) -> Result<u32> {
        const OPERATION: &str = "pin";
        for _ in 0..TRIES {
            let mut current = self.find_subscription(OPERATION, id).await?;
            let Some(slot) = self.take_seat(&current).await? else { continue };
            while current.slot != Some(slot) {
                let pinned = self.moved(&current, Some(slot));
                match self.swap(OPERATION, &current, pinned).await? {
                    Swapped::Done(pinned) => current = pinned,
                    Swapped::Conflict(newer) => current = newer,
                }
            }
            // Whoever came between the key and the subscription took the seat for empty.
            if self.member().seat(slot).await?.is_some_and(|seat| seat.holder == Some(id)) {
                return Ok(slot);
            }
        }
        let error = Error::new(ErrorKind::Conflict, OPERATION);
        Err(error.with_field("slot").with_detail("others were faster each time; try again"))
    }

    /// Ends that: its lanes move back to the slot they are hashed onto, and share it with others.
    pub async fn unpin(&self, id: SubscriptionId) -> Result<()> {
        const OPERATION: &str = "unpin";
        let mut current = self.find_subscription(OPERATION, id).await?;
        while let Some(slot) = current.slot {
            let unpinned = self.moved(&current, None);
            match self.swap(OPERATION, &current, unpinned).await? {
                Swapped::Done(unpinned) => {
                    self.leave_seat(id, slot).await;
                    current = unpinned;
                }
                Swapped::Conflict(newer) => current = newer,
            }
        }
        Ok(())
    }

    /// Has a slot, with whatever lanes are in it, worked by the node of that name for as long as it
    /// is there; by whomever the plan gives it to, if none is named. Together with
    /// [`pin`](Self::pin) it puts a subscription on a machine of one's choice. Returns once that is
    /// stored, which is before the slot has moved.
    pub async fn pin_slot(&self, slot: u32, node: Option<&str>) -> Result<()> {
        const OPERATION: &str = "pin_slot";
        let slots = self.context().all_slots();
        if slot >= slots {
            let error = Error::new(ErrorKind::NotFound, OPERATION).with_field("slot");
            return Err(
                error.with_detail(format!("there are slots 0 to {}", slots.saturating_sub(1)))
            );
        }
        self.member().pin_slot(slot, node).await
    }

    /// A subscription on its way to another slot. One that has yet to leave a slot still has to.
    fn moved(&self, current: &Subscription, slot: Option<u32>) -> Subscription {
        let from = current.moving_from.unwrap_or_else(|| self.context().slot_of(current));
        Subscription { slot, moving_from: Some(from), ..current.clone() }
    }

    /// Takes a reserved slot that is free, or the one it has; `None` if another was faster.
    async fn take_seat(&self, subscription: &Subscription) -> Result<Option<u32>> {
        let context = self.context();
        let reserved = context.slots..context.all_slots();
        let seats = self.member().seats().await?;
        let mut free = None;
        for slot in subscription.slot.into_iter().chain(reserved.clone()) {
            if !reserved.contains(&slot) {
                continue;
            }
            let seat = seats.iter().find(|seat| seat.slot == slot);
            match seat.and_then(|seat| seat.holder) {
                Some(holder) if holder == subscription.id => return Ok(Some(slot)),
                Some(holder) if self.is_in(holder, slot).await? => continue,
                _ => drop(free.get_or_insert((slot, seat))),
            }
        }
        let Some((slot, seat)) = free else {
            let detail = format!(
                "all {} slots for single subscriptions are taken: unpin one, or set pinned_slots",
                reserved.len()
            );
            return Err(Error::new(ErrorKind::Conflict, "pin")
                .with_field("slot")
                .with_detail(detail));
        };
        let taken = self.member().take_seat(slot, seat, subscription.id).await?;
        Ok(taken.then_some(slot))
    }

    /// Whether a subscription really is in a slot.
    async fn is_in(&self, id: SubscriptionId, slot: u32) -> Result<bool> {
        let found = self.context().repository.subscription(id).await?;
        Ok(found
            .is_some_and(|it| it.slot == Some(slot) && it.status != SubscriptionStatus::Deleting))
    }

    /// Frees a seat. If that fails, whoever looks for one finds that no subscription is there.
    async fn leave_seat(&self, id: SubscriptionId, slot: u32) {
        if let Err(error) = self.member().leave_seat(slot, id).await {
            warn!(subscription = %id, slot, error = %chain(&error), "could not free a slot's key");
        }
    }
}
