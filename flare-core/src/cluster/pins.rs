//! Takes an operator's wish that a slot belongs to a node; gives it to the key that the leader follows.

use std::collections::BTreeMap;

use super::keys::PINS;
use crate::error::{Error, ErrorKind, Result};
use crate::port::{Expect, Lease, Write, Written};

/// Has a slot belong to the node of that name, or to whoever the plan gives it to.
pub(crate) async fn pin_slot(lease: &dyn Lease, slot: u32, node: Option<&str>) -> Result<()> {
    const OPERATION: &str = "pin_slot";
    let fault = |source| Error::new(ErrorKind::Corrupt, OPERATION).source(source);
    let mut there = lease.get(PINS).await?;
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
        match lease.write(Write::new(PINS, value).expect(expect)).await? {
            Written::At(_) => return Ok(()),
            // Somebody else has pinned something meanwhile.
            Written::Conflict(entry) => there = entry,
        }
    }
}
