//! Which lanes follow from a subscription as it was read: each has a beginning, newer settings, or an end.

use std::sync::Arc;

use super::slot_work::{SlotWork, WorkEpoch};
use super::{
    EndedLanes, LaneSet, LanesCommand, LanesMoment, PreparedLanes, ReadSubscription, StartedLanes,
    TaskRole, UnpreparedLanes, WorkedLane, lanes_of,
};
use crate::model::{LaneId, Subscription, SubscriptionId, SubscriptionStatus, Takeover};
use crate::port::EpochGrant;

/// Why lanes must not go on under the epoch of those before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewEpoch {
    /// Each has other documents now. What the former ones did is stored.
    Renumbered,
    /// One of the former ones failed half-way.
    Failed,
    /// They were worked in another slot, perhaps by another node, perhaps until it failed.
    Moved,
}

impl<T: Clone, D: Clone> LaneSet<T, D> {
    pub(super) fn take_read(&mut self, read: Vec<ReadSubscription>, moment: &LanesMoment<'_, T>) {
        let unprepared: Vec<_> = read.into_iter().filter_map(|it| self.adopt(it, moment)).collect();
        self.reading = !unprepared.is_empty();
        if self.reading {
            self.commands.push(LanesCommand::Prepare(unprepared));
        }
    }

    pub(super) fn take_page(
        &mut self,
        read: Vec<ReadSubscription>,
        after: Option<SubscriptionId>,
        failed: bool,
        moment: &LanesMoment<'_, T>,
    ) {
        self.take_read(read, moment);
        if failed {
            self.agenda.page_failed(after, moment.now + super::AGAIN);
            return;
        }
        let again = self.sweep_every.mul_f64(1.0 + moment.random / 5.0);
        self.agenda.page_read(after, moment.now + again);
        if after.is_none() {
            let listens = |work: &SlotWork<T, D>| work.works() && work.listener.is_some();
            let slots = self.slots.iter().filter(|(_, work)| listens(work));
            let slots = slots.map(|(slot, _)| *slot).collect();
            self.commands.push(LanesCommand::CheckQueues(slots));
        }
    }

    /// Works a subscription as it now wants to be worked; gives it back if its lanes have to be prepared.
    fn adopt(
        &mut self,
        read: ReadSubscription,
        moment: &LanesMoment<'_, T>,
    ) -> Option<UnpreparedLanes> {
        match read {
            ReadSubscription::Found { subscription, prepared } => {
                return self.work(subscription, prepared, moment);
            }
            ReadSubscription::Gone(id) => {
                self.slots.values_mut().for_each(|work| work.forget(id));
                self.stop(id);
                self.leaving.remove(&id);
            }
            // Should it be readable again, its lanes go on under a later epoch than they had.
            ReadSubscription::Unreadable(id) => self.stop(id),
            ReadSubscription::Failed(id) => self.read_later(id, moment.now),
        }
        None
    }

    fn work(
        &mut self,
        subscription: Arc<Subscription>,
        prepared: Option<PreparedLanes>,
        moment: &LanesMoment<'_, T>,
    ) -> Option<UnpreparedLanes> {
        let (id, slot) = (subscription.id, self.numbers.of(&subscription));
        let works = self.slots.get(&slot).filter(|work| work.works());
        if works.is_some_and(|work| work.listener.is_none()) {
            // A reserved slot that a subscription has now.
            self.listen(slot, std::time::Duration::ZERO);
        }
        if let Some(from) = subscription.moving_from {
            self.leave(&subscription, from, moment);
            return None;
        }
        self.leaving.remove(&id);
        if subscription.status != SubscriptionStatus::Active {
            self.stop(id);
            return None;
        }
        let lanes = subscription.spec.delivery().lanes();
        let other = |worked: &WorkedLane| worked.lanes != lanes || worked.slot != slot;
        if self.lanes.range(lanes_of(id)).any(|(_, worked)| other(worked)) {
            // Each lane has other documents now: all end before any starts.
            self.stop(id);
            self.restarting.insert(id);
            return None;
        }
        let work = self.slots.get(&slot).filter(|work| work.works())?;
        let moved = work.epoch_of(id).epoch <= subscription.least_epoch;
        if self.works(id) {
            self.commands.push(LanesCommand::Update(Arc::clone(&subscription)));
        }
        let all = (0..lanes).map(|shard| LaneId::new(id, shard));
        let missing: Vec<LaneId> = all.filter(|lane| !self.lanes.contains_key(lane)).collect();
        if missing.is_empty() {
            return None;
        }
        let ended = self.ended.get(&id);
        let new_epoch = if moved { Some(NewEpoch::Moved) } else { new_epoch(ended, lanes) };
        let Some(PreparedLanes { resource, drawn }) = prepared else {
            return Some(UnpreparedLanes { subscription, draws: new_epoch.is_some() });
        };
        if !self.renew(id, slot, new_epoch, drawn, moment) {
            self.read_later(id, moment.now);
            return None;
        }
        let work = self.slots.get(&slot)?;
        let (term, epoch) = (work.term.clone(), work.epoch_of(id));
        let mut started = Vec::with_capacity(missing.len());
        for lane in missing {
            let task = self.begin_task(TaskRole { slot, lane: Some(lane) });
            self.lanes.insert(lane, WorkedLane { slot, lanes, task });
            started.push((lane, task));
        }
        self.ended.remove(&id);
        let moved = matches!(new_epoch, Some(NewEpoch::Renumbered | NewEpoch::Moved));
        let lanes = started;
        let start = StartedLanes { slot, lanes, term, epoch, subscription, resource, moved };
        self.commands.push(LanesCommand::Start(start));
        None
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
        new_epoch: Option<NewEpoch>,
        drawn: Option<EpochGrant>,
        moment: &LanesMoment<'_, T>,
    ) -> bool {
        let Some(new_epoch) = new_epoch else { return true };
        let Some(work) = self.slots.get_mut(&slot) else { return false };
        let before = work.epoch_of(id);
        // Trusted after it was drawn: the slot's next owner draws a greater one.
        let trusted = (moment.trusted)(&work.term, slot);
        let Some(drawn) = drawn.filter(|it| trusted && it.epoch > before.epoch) else {
            return false;
        };
        let takeover = match new_epoch {
            // Since the slot was taken everything was stored before anything else was begun.
            NewEpoch::Renumbered => before.takeover,
            NewEpoch::Failed | NewEpoch::Moved => Takeover { epoch: drawn.epoch, at: drawn.at },
        };
        work.renew(id, WorkEpoch { epoch: drawn.epoch, takeover });
        true
    }

    /// Ends the lanes of a subscription that has yet to leave a slot, and has it stored that it has left if
    /// that slot is ours. The owner is the only one who knows: one that never worked those lanes stores it at
    /// once, so the next owner makes up for one that died.
    fn leave(&mut self, subscription: &Arc<Subscription>, from: u32, moment: &LanesMoment<'_, T>) {
        let (id, generation) = (subscription.id, subscription.generation);
        if self.works(id) {
            self.stop(id);
            self.restarting.insert(id);
            return;
        }
        // A slot of other settings has no owner: then it is for the owner of the new one to say.
        let slot = if self.numbers.has(from) { from } else { self.numbers.of(subscription) };
        let Some(work) = self.slots.get(&slot).filter(|work| work.works()) else { return };
        // Trusted after it was read: no other node worked the slot before, and one that does later reads
        // that the subscription leaves it. So what was read may be replaced at any time.
        if !(moment.trusted)(&work.term, slot) {
            self.read_later(id, moment.now);
        } else if self.leaving.insert(id, generation) != Some(generation) {
            self.commands.push(LanesCommand::StoreLeft(Arc::clone(subscription)));
        }
    }

    /// Has the lanes of a subscription finish what is in flight and end.
    fn stop(&mut self, subscription: SubscriptionId) {
        let lanes = self.lanes.range(lanes_of(subscription)).map(|(lane, _)| *lane);
        self.commands.extend(lanes.map(LanesCommand::Stop));
    }
}

/// Whether, and why, lanes that start in place of those that ended need an epoch of their own.
fn new_epoch(ended: Option<&EndedLanes>, lanes: u16) -> Option<NewEpoch> {
    let ended = ended?;
    if ended.failed {
        return Some(NewEpoch::Failed);
    }
    (ended.lanes != lanes).then_some(NewEpoch::Renumbered)
}
