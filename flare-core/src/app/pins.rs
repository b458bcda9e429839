//! Takes a subscription that is too much for its neighbours; gives it a slot of its own, and a slot to a
//! node of the operator's choice. The lanes move by themselves (`pipeline/lanes/leave.rs`).

use std::time::Duration;

use tracing::warn;

use super::flare::Flare;
use super::subscriptions::Swapped;
use crate::cluster::keys::SEATS;
use crate::cluster::pin_slot;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Subscription, SubscriptionId, SubscriptionStatus};
use crate::pipeline::stage::chain;
use crate::port::{Entry, Expect, Write, Written};

/// The longest that the coordination store is waited for.
const LIMIT: Duration = Duration::from_secs(5);
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
            let seat = self.timed(OPERATION, self.context().lease.get(&seat(slot))).await?;
            if seat.is_some_and(|seat| sits(&seat) == Some(id)) {
                return Ok(slot);
            }
        }
        let error = Error::new(ErrorKind::Conflict, OPERATION);
        Err(error.field("slot").detail("others were faster each time; try again"))
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
            let error = Error::new(ErrorKind::NotFound, OPERATION).field("slot");
            return Err(error.detail(format!("there are slots 0 to {}", slots.saturating_sub(1))));
        }
        self.timed(OPERATION, pin_slot(&*self.context().lease, slot, node)).await
    }

    /// Gives up on a store that does not answer.
    async fn timed<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.context().sleep(LIMIT) => {
                let error = Error::new(ErrorKind::Timeout, operation);
                Err(error.detail("the coordination store did not answer in time"))
            }
        }
    }

    /// A subscription on its way to another slot. One that has yet to leave a slot still has to.
    fn moved(&self, current: &Subscription, slot: Option<u32>) -> Subscription {
        let from = current.moving_from.unwrap_or_else(|| self.context().slot_of(current));
        Subscription { slot, moving_from: Some(from), ..current.clone() }
    }

    /// Takes a reserved slot that is free, or the one it has; `None` if somebody was faster.
    async fn take_seat(&self, subscription: &Subscription) -> Result<Option<u32>> {
        let context = self.context();
        let reserved = context.slots..context.all_slots();
        let taken = self.timed("pin", context.lease.list(SEATS)).await?.entries;
        let entry = |slot: u32| taken.iter().find(|entry| entry.key == seat(slot));
        let mut free = None;
        for slot in subscription.slot.into_iter().chain(reserved.clone()) {
            if !reserved.contains(&slot) {
                continue;
            }
            let expect = match entry(slot) {
                Some(entry) if sits(entry) == Some(subscription.id) => return Ok(Some(slot)),
                Some(entry) if self.is_taken(entry, slot).await? => continue,
                Some(entry) => Expect::At(entry.revision),
                None => Expect::Absent,
            };
            free.get_or_insert((slot, expect));
        }
        let Some((slot, expect)) = free else {
            let detail = format!(
                "all {} slots for single subscriptions are taken: unpin one, or set pinned_slots",
                reserved.len()
            );
            return Err(Error::new(ErrorKind::Conflict, "pin").field("slot").detail(detail));
        };
        let write = Write::new(seat(slot), subscription.id.to_string()).expect(expect);
        let written = self.timed("pin", context.lease.write(write)).await?;
        Ok(matches!(written, Written::At(_)).then_some(slot))
    }

    /// Whether the subscription that a key names really is in the slot.
    async fn is_taken(&self, entry: &Entry, slot: u32) -> Result<bool> {
        let Some(id) = sits(entry) else { return Ok(false) };
        let found = self.context().repository.subscription(id).await?;
        Ok(found
            .is_some_and(|it| it.slot == Some(slot) && it.status != SubscriptionStatus::Deleting))
    }

    /// Frees a seat. If that fails, whoever looks for one finds that nobody sits there.
    async fn leave_seat(&self, id: SubscriptionId, slot: u32) {
        let lease = &self.context().lease;
        let freed = async {
            match lease.get(&seat(slot)).await? {
                Some(entry) if sits(&entry) == Some(id) => {
                    lease.delete(&entry.key, Expect::At(entry.revision)).await.map(drop)
                }
                _ => Ok(()),
            }
        };
        if let Err(error) = self.timed("unpin", freed).await {
            warn!(subscription = %id, slot, error = %chain(&error), "could not free a slot's key");
        }
    }
}

fn seat(slot: u32) -> String {
    format!("{SEATS}{slot}")
}

/// Who has the seat, as its key says.
fn sits(entry: &Entry) -> Option<SubscriptionId> {
    str::from_utf8(&entry.value).ok()?.parse().ok()
}
