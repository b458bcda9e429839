//! Remembers of a coordination store whom its plan has work which slot.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use flare_core::Result;
use flare_core::cluster::{NodeRecord, SlotPlan};
use flare_core::model::{Epoch, NodeId, SubscriptionId};
use flare_core::port::{KeyEvent, Lease, Repository, Scan, StoreRevision, Write, Written};
use flare_testkit::intercept::{Hooks, LeaseHooks};
use futures::{FutureExt, StreamExt};

/// Who works what, as it is stored at this moment.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    names: BTreeMap<NodeId, String>,
    plan: Option<SlotPlan>,
    /// How often anything was written.
    pub(crate) writes: u64,
    /// In which slot a subscription is worked, where not all are hashed.
    pub(crate) place: Option<Place>,
}

/// Tells in which slot a subscription is worked, or was until it has left it, and later than which
/// epoch.
pub(crate) struct Place(Box<dyn Fn(SubscriptionId) -> Option<(u32, Epoch)> + Send>);

impl Place {
    /// As the store says, where so many slots are for lanes that are hashed.
    pub(crate) fn stored(store: Arc<dyn Repository>, hashed: u32) -> Self {
        Self(Box::new(move |id| {
            let stored = store.subscription(id).now_or_never()?.ok()??;
            let hash = || u32::try_from(slot_of(id, hashed as usize)).unwrap();
            let slot = stored.moving_from.or(stored.slot).unwrap_or_else(hash);
            Some((slot, stored.least_epoch))
        }))
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Place")
    }
}

impl Seen {
    /// The name of the node that works a subscription, and its epoch.
    pub(crate) fn worker(&self, subscription: SubscriptionId) -> Option<(&str, Epoch)> {
        let plan = self.plan.as_ref()?;
        let (slot, least) = match &self.place {
            Some(Place(place)) => {
                place(subscription).map(|(slot, least)| (slot as usize, least))?
            }
            None => (slot_of(subscription, plan.slots.len()), Epoch::ZERO),
        };
        let (node, takeover) = plan.slots[slot].worker()?;
        Some((self.names.get(&node)?, takeover.epoch.max(least)))
    }
}

/// The slot that a subscription's lanes are hashed onto: all nodes have to agree on it for ever.
fn slot_of(id: SubscriptionId, slots: usize) -> usize {
    let bytes = id.as_bytes();
    let number = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
    number as usize % slots
}

/// Notes what is written of plans and nodes.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// While set, watches show no news.
    pub(crate) deaf: Arc<AtomicBool>,
}

impl Observed {
    fn note(&self, key: &str, value: &[u8]) {
        let mut seen = self.seen.lock().unwrap();
        seen.writes += 1;
        if key == "cluster/plan" {
            seen.plan = Some(SlotPlan::decode(value).unwrap());
        } else if let Some(id) = key.strip_prefix("cluster/nodes/") {
            let record: NodeRecord = serde_json::from_slice(value).unwrap();
            seen.names.insert(id.parse().unwrap(), record.name);
        }
    }
}

impl Hooks for Observed {}

#[async_trait]
impl LeaseHooks for Observed {
    const ELSEWHERE: bool = true;

    async fn write(&self, inner: &dyn Lease, write: Write) -> Result<Written> {
        let (key, value) = (write.key.clone(), write.value.clone());
        let written = inner.write(write).await?;
        if matches!(written, Written::At(_)) {
            self.note(&key, &value);
        }
        Ok(written)
    }

    fn watch(
        &self,
        inner: &dyn Lease,
        prefix: &str,
        from: StoreRevision,
    ) -> Scan<'static, KeyEvent> {
        let deaf = Arc::clone(&self.deaf);
        let heard = move |event: &Result<KeyEvent>| {
            let news = event.as_ref().is_ok_and(|event| event.key == "cluster/news");
            std::future::ready(!(news && deaf.load(Ordering::Relaxed)))
        };
        inner.watch(prefix, from).filter(heard).boxed()
    }
}
