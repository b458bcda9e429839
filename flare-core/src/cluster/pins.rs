//! Slots that operators give away: one to a node of their choice, which the leader follows, or a reserved
//! one to a subscription, whose lanes move there.

use std::collections::BTreeMap;

use super::handle::ClusterHandle;
use super::keys::{PINS, SEATS};
use crate::error::{Error, ErrorKind, Result};
use crate::model::SubscriptionId;
use crate::port::{Entry, Expect, Write, Written};

/// A reserved slot, and whose it is by its key. A key alone reserves nothing: the subscription says where
/// it is, the key keeps two of them from choosing the same slot.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) slot: u32,
    pub(crate) holder: Option<SubscriptionId>,
    entry: Entry,
}

impl Seat {
    fn read(entry: Entry) -> Option<Self> {
        let slot = entry.key.strip_prefix(SEATS)?.parse().ok()?;
        let holder = str::from_utf8(&entry.value).ok().and_then(|id| id.parse().ok());
        Some(Self { slot, holder, entry })
    }
}

impl ClusterHandle {
    /// The reserved slots that have a holder by their keys.
    pub(crate) async fn seats(&self) -> Result<Vec<Seat>> {
        let context = self.context();
        let found = context.timed("pin", context.lease.list(SEATS)).await?;
        Ok(found.entries.into_iter().filter_map(Seat::read).collect())
    }

    /// Whose a reserved slot is by its key.
    pub(crate) async fn seat(&self, slot: u32) -> Result<Option<Seat>> {
        let context = self.context();
        let found = context.timed("pin", context.lease.get(&key(slot))).await?;
        Ok(found.and_then(Seat::read))
    }

    /// Takes a reserved slot that has no holder, or the one it had; tells whether nobody was faster.
    pub(crate) async fn take_seat(
        &self,
        slot: u32,
        before: Option<&Seat>,
        holder: SubscriptionId,
    ) -> Result<bool> {
        let expect = before.map_or(Expect::Absent, |seat| Expect::At(seat.entry.revision));
        let write = Write::new(key(slot), holder.to_string()).expect(expect);
        let context = self.context();
        let written = context.timed("pin", context.lease.write(write)).await?;
        Ok(matches!(written, Written::At(_)))
    }

    /// Frees a reserved slot, if it is still this subscription's.
    pub(crate) async fn leave_seat(&self, slot: u32, holder: SubscriptionId) -> Result<()> {
        let Some(seat) = self.seat(slot).await?.filter(|seat| seat.holder == Some(holder)) else {
            return Ok(());
        };
        let context = self.context();
        let left = context.lease.delete(&seat.entry.key, Expect::At(seat.entry.revision));
        context.timed("unpin", left).await.map(drop)
    }

    /// Has a slot belong to the node of that name, or to whoever the plan gives it to.
    pub(crate) async fn pin_slot(&self, slot: u32, node: Option<&str>) -> Result<()> {
        const OPERATION: &str = "pin_slot";
        let context = self.context();
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

fn key(slot: u32) -> String {
    format!("{SEATS}{slot}")
}
