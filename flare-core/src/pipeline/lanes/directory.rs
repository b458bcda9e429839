//! Takes the lanes that are worked; gives whoever has news for one a way to reach it, and whoever
//! starts one what became of those before. Knows no store and no queue.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use tokio::task::Id;

use super::hear::Whose;
use super::near::LanePlace;
use crate::model::{LaneId, Subscription, SubscriptionId, Timestamp};
use crate::ownership::{Slots, Term};
use crate::pipeline::lane::{HandedRows, Handover, Hold, Restored};
use crate::pipeline::stop::Stopper;
use crate::port::Clock;
use crate::tools::lock;

/// Who is to be woken, told and stopped.
#[derive(Default)]
pub(super) struct Directory {
    lanes: Mutex<BTreeMap<LaneId, Worked>>,
    /// Subscriptions whose lanes ended in a slot that is still ours.
    former: Mutex<BTreeMap<SubscriptionId, Former>>,
    /// News may have been lost, of lanes that nobody works yet, too.
    missed: Notify,
    /// How many slots are ours.
    slots: AtomicUsize,
}

/// A lane that is worked.
pub(super) struct Worked {
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
    /// Who works it.
    pub(super) task: Id,
}

/// What became of lanes that are not worked any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Former {
    slot: u32,
    /// How many the subscription had.
    lanes: u16,
    /// One of them failed: nobody knows what it had sent.
    failed: bool,
}

/// Why lanes must not go on under the epoch of those before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Afresh {
    /// Each has other documents now. What the former ones did is stored.
    Renumbered,
    /// One of the former ones failed half-way.
    Failed,
    /// They were worked in another slot, perhaps by somebody else, perhaps until it failed.
    Moved,
}

impl Worked {
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
    fn with<R>(&self, work: impl FnOnce(&mut BTreeMap<LaneId, Worked>) -> R) -> R {
        work(&mut lock(&self.lanes))
    }

    pub(super) fn len(&self) -> usize {
        self.with(|all| all.len())
    }

    /// The lanes that are worked.
    pub(super) fn lanes(&self) -> Vec<LaneId> {
        self.with(|all| all.keys().copied().collect())
    }

    fn with_former<R>(&self, work: impl FnOnce(&mut BTreeMap<SubscriptionId, Former>) -> R) -> R {
        work(&mut lock(&self.former))
    }

    pub(super) fn insert(&self, lane: LaneId, worked: Worked) {
        self.with(|all| all.insert(lane, worked));
        self.with_former(|former| former.remove(&lane.subscription));
    }

    /// Forgets a lane whose task ended, unless another one works it.
    pub(super) fn remove(&self, lane: LaneId, task: Id) -> Option<Worked> {
        self.with(|all| {
            let its = all.get(&lane).is_some_and(|worked| worked.task == task);
            its.then(|| all.remove(&lane)).flatten()
        })
    }

    /// Remembers a lane that ended, for those that are started in its place.
    pub(super) fn remember(&self, subscription: SubscriptionId, ended: &Worked, failed: bool) {
        let Worked { slot, lanes, .. } = *ended;
        self.with_former(|former| {
            let it = former.entry(subscription).or_insert(Former { slot, lanes, failed });
            it.failed |= failed;
        });
    }

    /// Forgets the lanes of these slots: whoever works them next does so under another epoch.
    pub(super) fn forget(&self, slots: &Slots) {
        self.with(|all| all.retain(|_, worked| !slots.contains(worked.slot)));
        self.with_former(|former| former.retain(|_, it| !slots.contains(it.slot)));
    }

    /// Whether, and why, the lanes of a subscription need an epoch of their own to start.
    pub(super) fn afresh(&self, subscription: &Subscription) -> Option<Afresh> {
        let former = self.with_former(|former| former.get(&subscription.id).copied())?;
        if former.failed {
            return Some(Afresh::Failed);
        }
        let renumbered = former.lanes != subscription.spec.delivery().lanes();
        renumbered.then_some(Afresh::Renumbered)
    }

    /// Whether any lane of a subscription is worked.
    pub(super) fn works(&self, subscription: SubscriptionId) -> bool {
        self.with(|all| all.range(of(subscription)).next().is_some())
    }

    /// Lets the lanes of these slots finish what is in flight and end.
    pub(super) fn stop_all(&self, slots: &Slots) {
        self.with(|all| {
            all.values().filter(|it| slots.contains(it.slot)).for_each(Worked::stop);
        });
        self.with_former(|former| former.retain(|_, it| !slots.contains(it.slot)));
    }

    /// Lets the lanes of a subscription finish what is in flight and end.
    pub(super) fn stop(&self, subscription: SubscriptionId) {
        self.with(|all| all.range(of(subscription)).for_each(|(_, worked)| worked.stop()));
    }

    /// Whether lanes of a subscription are worked that were started when it had another number of
    /// them, or another slot.
    pub(super) fn has_other_than(
        &self,
        subscription: SubscriptionId,
        lanes: u16,
        slot: u32,
    ) -> bool {
        let other = |worked: &Worked| worked.lanes != lanes || worked.slot != slot;
        self.with(|all| all.range(of(subscription)).any(|(_, worked)| other(worked)))
    }

    /// Which lanes of a subscription are not worked.
    pub(super) fn missing(&self, subscription: &Subscription) -> Vec<LaneId> {
        self.with(|all| lanes(subscription).filter(|lane| !all.contains_key(lane)).collect())
    }

    /// Hands newer settings to the lanes of a subscription.
    pub(super) fn update(&self, subscription: &Arc<Subscription>) {
        self.with(|all| {
            all.range(of(subscription.id)).for_each(|(_, worked)| worked.update(subscription));
        });
    }

    /// What the lanes of a subscription share.
    pub(super) fn hold(&self, subscription: SubscriptionId) -> Arc<Hold> {
        let one = |(_, worked): (&LaneId, &Worked)| Arc::clone(&worked.hold);
        self.with(|all| all.range(of(subscription)).next().map(one)).unwrap_or_default()
    }

    /// Wakes a lane; tells whether it is worked.
    pub(super) fn wake(&self, lane: LaneId) -> bool {
        self.with(|all| all.get(&lane).map(|worked| worked.wake.notify_one()).is_some())
    }

    /// Hands rows to a lane, or wakes it; tells whether it is worked here, as whoever wrote them knows it,
    /// and the slot certainly still ours.
    pub(super) fn tell(&self, place: LanePlace, rows: Option<Handover>, clock: &dyn Clock) -> bool {
        let LanePlace { lane, slot, lanes } = place;
        self.with(|all| {
            let same = |it: &&Worked| it.slot == slot && it.lanes == lanes;
            let ours = |it: &&Worked| it.term.is_trusted(slot, clock);
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
    pub(super) fn wake_all(&self, whose: Whose) {
        self.each(whose, |worked| worked.wake.notify_one());
    }

    /// Tells the lanes that are woken by a queue that it was made again, and wakes them.
    pub(super) fn restored(&self, whose: Whose, at: Timestamp) {
        self.each(whose, |worked| {
            worked.restored.at(at);
            worked.wake.notify_one();
        });
    }

    /// News of subscriptions were lost with the queue of their slot.
    pub(super) fn miss_news(&self) {
        self.missed.notify_one();
    }

    /// Waits until news were lost.
    pub(super) async fn news_missed(&self) {
        self.missed.notified().await;
    }

    fn each(&self, whose: Whose, tell: impl Fn(&Worked)) {
        self.with(|all| match whose {
            Whose::Slot(slot) => all.values().filter(|it| it.slot == slot).for_each(tell),
            Whose::Lane(lane) => all.get(&lane).into_iter().for_each(tell),
        });
    }
}

/// The names that lanes of one subscription may have.
fn of(subscription: SubscriptionId) -> RangeInclusive<LaneId> {
    LaneId::new(subscription, 0)..=LaneId::new(subscription, u16::MAX)
}

/// The lanes a subscription has.
fn lanes(subscription: &Subscription) -> impl Iterator<Item = LaneId> + use<> {
    let id = subscription.id;
    (0..subscription.spec.delivery().lanes()).map(move |shard| LaneId::new(id, shard))
}
