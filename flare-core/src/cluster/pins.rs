//! Slots that operators give away: one to a node of their choice, which the leader follows, or a reserved
//! one to a subscription, whose lanes move there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use async_trait::async_trait;
use tracing::warn;

use super::handle::ClusterHandle;
use super::keys::{PINS, RESERVED};
use super::view::ClusterView;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{SubscriptionId, SubscriptionStatus};
use crate::port::{Entry, Expect, Write, Written};

/// How often other subscriptions may be faster before a pin is given up.
const TRIES: usize = 64;

/// The subscriptions' side of it: their records say which slot they have.
#[async_trait]
pub(crate) trait SlotRecords: Send + Sync {
    /// The reserved slot that a subscription has; an error if there is no such subscription.
    async fn slot_of(&self, id: SubscriptionId) -> Result<Option<u32>>;

    /// Has it move to a reserved slot, or back to the one it is hashed onto; tells which reserved one it left.
    async fn move_to(&self, id: SubscriptionId, slot: Option<u32>) -> Result<Option<u32>>;
}

/// A reserved slot, and whose it is by its key. A key alone reserves nothing: the subscription says where
/// it is, the key keeps two of them from choosing the same slot.
#[derive(Debug)]
struct ReservedSlot {
    slot: u32,
    holder: Option<SubscriptionId>,
    entry: Entry,
}

impl ReservedSlot {
    fn read(entry: Entry) -> Option<Self> {
        let slot = entry.key.strip_prefix(RESERVED)?.parse().ok()?;
        let holder = str::from_utf8(&entry.value).ok().and_then(|id| id.parse().ok());
        Some(Self { slot, holder, entry })
    }
}

impl ClusterHandle {
    /// Gives a subscription one of the reserved slots, which no other shares, and tells which. One that has
    /// such a slot keeps it.
    pub(crate) async fn reserve_slot(
        &self,
        id: SubscriptionId,
        reserved: Range<u32>,
        records: &dyn SlotRecords,
    ) -> Result<u32> {
        for _ in 0..TRIES {
            let has = records.slot_of(id).await?;
            let Some(slot) = self.take_reserved(id, has, reserved.clone()).await? else { continue };
            records.move_to(id, Some(slot)).await?;
            // A subscription that came between the key and the record took the slot for free.
            if self.reserved_slot(slot).await?.is_some_and(|it| it.holder == Some(id)) {
                return Ok(slot);
            }
        }
        Err(no_slot("others were faster each time; try again"))
    }

    /// Ends that; tells which slot it had. If the key cannot be removed, the next that looks for a slot finds that no subscription is
    /// there.
    pub(crate) async fn free_slot(
        &self,
        id: SubscriptionId,
        records: &dyn SlotRecords,
    ) -> Result<Option<u32>> {
        let had = records.move_to(id, None).await?;
        if let Some(slot) = had
            && let Err(error) = self.leave_reserved(slot, id).await
        {
            warn!(subscription = %id, slot, ?error, "could not free a slot's key");
        }
        Ok(had)
    }

    /// Takes a reserved slot that is free, or the one the subscription has; `None` if another was faster.
    async fn take_reserved(
        &self,
        id: SubscriptionId,
        has: Option<u32>,
        reserved: Range<u32>,
    ) -> Result<Option<u32>> {
        let context = self.context();
        let found = context.timed("pin", context.lease.list(RESERVED)).await?;
        let taken: Vec<_> = found.entries.into_iter().filter_map(ReservedSlot::read).collect();
        let mut free = None;
        for slot in has.into_iter().filter(|slot| reserved.contains(slot)).chain(reserved.clone()) {
            let before = taken.iter().find(|it| it.slot == slot);
            match before.and_then(|it| it.holder) {
                Some(holder) if holder == id => return Ok(Some(slot)),
                Some(holder) if self.is_in(holder, slot).await? => {}
                _ => drop(free.get_or_insert((slot, before))),
            }
        }
        let Some((slot, before)) = free else {
            return Err(no_slot(format!(
                "all {} slots for single subscriptions are taken: unpin one, or set pinned_slots",
                reserved.len()
            )));
        };
        let expect = before.map_or(Expect::Absent, |it| Expect::At(it.entry.revision));
        let write = Write::new(key(slot), id.to_string()).expect(expect);
        let written = context.timed("pin", context.lease.write(write)).await?;
        Ok(matches!(written, Written::At(_)).then_some(slot))
    }

    /// Whose a reserved slot is by its key.
    async fn reserved_slot(&self, slot: u32) -> Result<Option<ReservedSlot>> {
        let context = self.context();
        let found = context.timed("pin", context.lease.get(&key(slot))).await?;
        Ok(found.and_then(ReservedSlot::read))
    }

    /// Whether a subscription really is in a slot.
    async fn is_in(&self, id: SubscriptionId, slot: u32) -> Result<bool> {
        let found = self.context().repository.subscription(id).await?;
        Ok(found
            .is_some_and(|it| it.slot == Some(slot) && it.status != SubscriptionStatus::Deleting))
    }

    /// Removes a reserved slot's key, if it is still this subscription's.
    async fn leave_reserved(&self, slot: u32, holder: SubscriptionId) -> Result<()> {
        let found = self.reserved_slot(slot).await?;
        let Some(ReservedSlot { entry, .. }) = found.filter(|it| it.holder == Some(holder)) else {
            return Ok(());
        };
        let context = self.context();
        let left = context.lease.delete(&entry.key, Expect::At(entry.revision));
        context.timed("unpin", left).await.map(drop)
    }

    /// Has a slot belong to the node of that name, or to the node that the plan gives it to.
    pub(crate) async fn pin_slot(&self, slot: u32, node: Option<&str>) -> Result<()> {
        const OPERATION: &str = "pin_slot";
        let context = self.context();
        if slot >= context.slots {
            let detail = format!("there are slots 0 to {}", context.slots.saturating_sub(1));
            let error = Error::new(ErrorKind::NotFound, OPERATION).with_field("slot");
            return Err(error.with_detail(detail));
        }
        if let Some(node) = node {
            is_there(&self.read().await?, node)?;
        }
        let fault = |source| Error::new(ErrorKind::Corrupt, OPERATION).with_source(source);
        let mut there = context.timed(OPERATION, context.lease.get(PINS)).await?;
        loop {
            let mut pins: BTreeMap<u32, String> = match &there {
                Some(entry) => serde_json::from_slice(&entry.value).map_err(fault)?,
                None => BTreeMap::new(),
            };
            match node {
                Some(node) => pins.insert(slot, node.to_owned()),
                None => pins.remove(&slot),
            };
            let expect = there.as_ref().map_or(Expect::Absent, |entry| Expect::At(entry.revision));
            let value = serde_json::to_vec(&pins).map_err(fault)?;
            let write = context.lease.write(Write::new(PINS, value).expect(expect));
            match context.timed(OPERATION, write).await? {
                Written::At(_) => return Ok(()),
                // Another operator has pinned something meanwhile.
                Written::Conflict(entry) => there = entry,
            }
        }
    }
}

/// Refuses a name that no node has; a node that this version cannot read may have any.
fn is_there(view: &ClusterView, node: &str) -> Result<()> {
    let names: Option<BTreeSet<_>> =
        view.nodes.iter().map(|it| it.record.as_ref().map(|record| &*record.name)).collect();
    match names {
        Some(names) if !names.contains(node) => {
            let names: Vec<_> = names.into_iter().collect();
            let detail = format!("no node has that name: there are {}", names.join(", "));
            let error = Error::new(ErrorKind::Invalid, "pin_slot").with_field("node");
            Err(error.with_detail(detail))
        }
        _ => Ok(()),
    }
}

fn key(slot: u32) -> String {
    format!("{RESERVED}{slot}")
}

fn no_slot(detail: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Conflict, "pin").with_field("slot").with_detail(detail)
}
