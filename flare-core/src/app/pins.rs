//! Takes a subscription that is too much for its neighbours; gives it a slot of its own, and a slot to a
//! node of the operator's choice (`cluster/pins.rs`). The lanes move by themselves (`pipeline/lanes/leave.rs`).

use async_trait::async_trait;

use super::flare::Flare;
use super::subscriptions::Swapped;
use crate::cluster::SlotRecords;
use crate::error::Result;
use crate::model::{AuditAction, AuditSubject, Subscription, SubscriptionId};

impl Flare {
    /// Gives a subscription a slot of its own, which no other shares, and tells which: one of
    /// [`Settings::pinned_slots`](crate::pipeline::Settings::pinned_slots), a conflict on `slot` if
    /// none is free. Its lanes finish what is in flight, then start in the new slot; nothing is
    /// lost or sent twice by that. One that has such a slot keeps it.
    pub async fn pin(&self, id: SubscriptionId) -> Result<u32> {
        let context = self.context();
        let before = self.slot_of(id).await?;
        let reserved = context.slots..context.all_slots();
        let slot = self.member().reserve_slot(id, reserved, self).await?;
        if before != Some(slot) {
            let detail = format!("slot {slot}");
            self.tell(AuditAction::Pinned, AuditSubject::subscription(id), detail);
        }
        Ok(slot)
    }

    /// Ends that: its lanes move back to the slot they are hashed onto, and share it with others.
    pub async fn unpin(&self, id: SubscriptionId) -> Result<()> {
        if let Some(slot) = self.member().free_slot(id, self).await? {
            let detail = format!("slot {slot}");
            self.tell(AuditAction::Unpinned, AuditSubject::subscription(id), detail);
        }
        Ok(())
    }

    /// Has a slot, with whatever lanes are in it, worked by the node of that name for as long as it
    /// is there; by the node that the plan gives it to, if none is named. A name that no node has now is
    /// refused, on `node`. Together with
    /// [`pin`](Self::pin) it puts a subscription on a machine of one's choice. Returns once that is
    /// stored, which is before the slot has moved.
    pub async fn pin_slot(&self, slot: u32, node: Option<&str>) -> Result<()> {
        self.member().pin_slot(slot, node).await?;
        let (action, detail) = match node {
            Some(node) => (AuditAction::Pinned, format!("node {node}")),
            None => (AuditAction::Unpinned, String::new()),
        };
        self.tell(action, AuditSubject::slot(slot), detail);
        Ok(())
    }
}

#[async_trait]
impl SlotRecords for Flare {
    async fn slot_of(&self, id: SubscriptionId) -> Result<Option<u32>> {
        Ok(self.find_subscription("pin", id).await?.slot)
    }

    async fn move_to(&self, id: SubscriptionId, slot: Option<u32>) -> Result<Option<u32>> {
        let operation = if slot.is_some() { "pin" } else { "unpin" };
        let mut current = self.find_subscription(operation, id).await?;
        while current.slot != slot {
            // One that has yet to leave a slot still has to.
            let from = current.moving_from.unwrap_or_else(|| self.context().slot_of(&current));
            let moved = Subscription { slot, moving_from: Some(from), ..current.clone() };
            match self.swap(operation, &current, moved).await? {
                Swapped::Done(_) => return Ok(current.slot),
                Swapped::Conflict(newer) => current = newer,
            }
        }
        Ok(None)
    }
}
