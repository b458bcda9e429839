//! The lanes that are worked, and how to reach each. Knows no store and no queue.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use super::listener::WakeQueue;
use super::near::LaneAddress;
use crate::model::{LaneId, Subscription, SubscriptionId, Timestamp};
use crate::ownership::Term;
use crate::pipeline::lane::{HandedRows, Handover, Hold, Restored};
use crate::pipeline::stop::Stopper;
use crate::port::Clock;
use crate::tools::lock;

/// The lanes that can be woken, told and stopped.
#[derive(Default)]
pub(super) struct Directory {
    lanes: Mutex<BTreeMap<LaneId, ReachableLane>>,
    /// Changes may have gone unnoticed, of lanes that are not worked yet, too.
    missed: Notify,
    /// How many slots are ours.
    slots: AtomicUsize,
}

/// A lane that is worked.
pub(super) struct ReachableLane {
    pub(super) slot: u32,
    /// How many lanes the subscription had when this one was started.
    pub(super) lanes: u16,
    pub(super) hold: Arc<Hold>,
    pub(super) restored: Arc<Restored>,
    pub(super) wake: Arc<Notify>,
    pub(super) handed: Arc<HandedRows>,
    pub(super) term: Term,
    pub(super) updates: watch::Sender<Arc<Subscription>>,
    pub(super) stopper: Stopper,
}

impl ReachableLane {
    /// Hands newer settings over.
    fn update(&self, subscription: &Arc<Subscription>) {
        self.updates.send_replace(Arc::clone(subscription));
        self.wake.notify_one();
    }

    /// Has it finish what is in flight and end.
    fn stop(&self) {
        self.stopper.stop();
        self.wake.notify_one();
    }
}

impl Directory {
    fn with<R>(&self, work: impl FnOnce(&mut BTreeMap<LaneId, ReachableLane>) -> R) -> R {
        work(&mut lock(&self.lanes))
    }

    /// The lanes that are worked.
    pub(super) fn lanes(&self) -> Vec<LaneId> {
        self.with(|all| all.keys().copied().collect())
    }

    pub(super) fn insert(&self, lane: LaneId, reachable: ReachableLane) {
        self.with(|all| all.insert(lane, reachable));
    }

    /// A lane is not worked any more, or is being dropped.
    pub(super) fn remove(&self, lane: LaneId) {
        self.with(|all| all.remove(&lane));
    }

    /// Lets a lane finish what is in flight and end.
    pub(super) fn stop(&self, lane: LaneId) {
        self.with(|all| all.get(&lane).into_iter().for_each(ReachableLane::stop));
    }

    /// Hands newer settings to the lanes of a subscription.
    pub(super) fn update(&self, subscription: &Arc<Subscription>) {
        self.with(|all| {
            all.range(of(subscription.id)).for_each(|(_, worked)| worked.update(subscription));
        });
    }

    /// What the lanes of a subscription share.
    pub(super) fn hold(&self, subscription: SubscriptionId) -> Arc<Hold> {
        let one = |(_, worked): (&LaneId, &ReachableLane)| Arc::clone(&worked.hold);
        self.with(|all| all.range(of(subscription)).next().map(one)).unwrap_or_default()
    }

    /// Wakes a lane; tells whether it is worked.
    pub(super) fn wake(&self, lane: LaneId) -> bool {
        self.with(|all| all.get(&lane).map(|worked| worked.wake.notify_one()).is_some())
    }

    /// Hands rows to a lane, or wakes it; tells whether it is worked here, as the spread that wrote them knows it,
    /// and the slot certainly still ours.
    pub(super) fn tell(
        &self,
        address: LaneAddress,
        rows: Option<Handover>,
        clock: &dyn Clock,
    ) -> bool {
        let LaneAddress { lane, slot, lanes } = address;
        self.with(|all| {
            let same = |it: &&ReachableLane| it.slot == slot && it.lanes == lanes;
            let ours = |it: &&ReachableLane| it.term.is_trusted(slot, clock);
            let Some(worked) = all.get(&lane).filter(same).filter(ours) else { return false };
            if !rows.is_some_and(|rows| worked.handed.give(rows)) {
                worked.wake.notify_one();
            }
            true
        })
    }

    /// Notes how many slots are ours.
    pub(super) fn set_slots(&self, count: usize) {
        self.slots.store(count, Ordering::Relaxed);
    }

    /// How many slots are ours.
    pub(super) fn slots(&self) -> usize {
        self.slots.load(Ordering::Relaxed)
    }

    /// Wakes the lanes that are woken by a queue.
    pub(super) fn wake_all(&self, queue: WakeQueue) {
        self.each(queue, |worked| worked.wake.notify_one());
    }

    /// Tells the lanes that are woken by a queue that it was made again, and wakes them.
    pub(super) fn restored(&self, queue: WakeQueue, at: Timestamp) {
        self.each(queue, |worked| {
            worked.restored.at(at);
            worked.wake.notify_one();
        });
    }

    /// Changes of subscriptions were lost with the queue of their slot.
    pub(super) fn miss_changes(&self) {
        self.missed.notify_one();
    }

    /// Waits until some were lost.
    pub(super) async fn changes_missed(&self) {
        self.missed.notified().await;
    }

    fn each(&self, queue: WakeQueue, tell: impl Fn(&ReachableLane)) {
        self.with(|all| match queue {
            WakeQueue::Slot(slot) => all.values().filter(|it| it.slot == slot).for_each(tell),
            WakeQueue::Lane(lane) => all.get(&lane).into_iter().for_each(tell),
        });
    }
}

/// The names that lanes of one subscription may have.
fn of(subscription: SubscriptionId) -> RangeInclusive<LaneId> {
    LaneId::new(subscription, 0)..=LaneId::new(subscription, u16::MAX)
}
