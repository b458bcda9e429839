//! The set of lanes a node works, without everything that takes time: an event and the moment it happens at
//! go in, commands come out. No await, no clock, no log, no randomness; the runner (`lanes/runner.rs`) obeys.
//!
//! - `slot_work`: what is worked in one slot; `agenda`: what is to be read from the stores next.
//! - `subscriptions`: which lanes follow from a subscription as it was read.
//! - Every turn takes the event first, ends what did not drain in time, and then reads what is next.

mod agenda;
mod commands;
mod events;
mod slot_work;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;

use self::agenda::Agenda;
pub(super) use self::commands::{LanesCommand, StartedLanes, UnpreparedLanes};
pub(super) use self::events::{LanesEvent, LanesMoment, PreparedLanes, ReadSubscription};
use self::slot_work::SlotWork;
pub(super) use self::slot_work::WorkEpoch;
use crate::model::{Generation, LaneId, SubscriptionId, Timestamp};
use crate::ownership::{SlotChange, SlotNumbers, Slots};

/// How long something that failed is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// The lanes of the slots a node has. `T` is a term of theirs, and `D` tells when its last clone is gone that
/// slots were given up; neither means anything here.
#[derive(Debug)]
pub(super) struct LaneSet<T, D> {
    numbers: SlotNumbers,
    /// How often all subscriptions of the slots are read.
    sweep_every: Duration,
    /// What is worked, by slot.
    slots: BTreeMap<u32, SlotWork<T, D>>,
    /// The lanes that can be reached: all that are worked, but for those that are being dropped.
    lanes: BTreeMap<LaneId, WorkedLane>,
    /// Subscriptions whose lanes ended in a slot that is still ours.
    ended: BTreeMap<SubscriptionId, EndedLanes>,
    /// Slots that drain, by when they have to be done.
    drains: BTreeMap<Timestamp, Vec<Slots>>,
    /// What each task does, by the number it was begun under.
    tasks: HashMap<u64, TaskRole>,
    /// The number of the next one.
    next_task: u64,
    /// Subscriptions that start anew once the last of their lanes has ended.
    restarting: BTreeSet<SubscriptionId>,
    /// Those of which it is being stored that they have left a slot, and as of which generation.
    leaving: BTreeMap<SubscriptionId, Generation>,
    agenda: Agenda,
    /// A subscription that changed, and waits to be read.
    changed: Option<SubscriptionId>,
    /// The stores are being read.
    reading: bool,
    commands: Vec<LanesCommand<T>>,
}

/// A lane that is worked.
#[derive(Debug, Clone, Copy)]
struct WorkedLane {
    slot: u32,
    /// How many lanes the subscription had when this one was started.
    lanes: u16,
    task: u64,
}

/// What became of lanes that are not worked any more.
#[derive(Debug, Clone, Copy)]
struct EndedLanes {
    slot: u32,
    /// How many the subscription had.
    lanes: u16,
    /// One of them failed: what it had sent is unknown.
    failed: bool,
}

/// What a task does.
#[derive(Debug, Clone, Copy)]
struct TaskRole {
    slot: u32,
    /// Which lane it works; none, if it listens to the slot's queue.
    lane: Option<LaneId>,
}

impl<T: Clone, D: Clone> LaneSet<T, D> {
    pub(super) fn new(numbers: SlotNumbers, sweep_every: Duration) -> Self {
        Self {
            numbers,
            sweep_every,
            slots: BTreeMap::new(),
            lanes: BTreeMap::new(),
            ended: BTreeMap::new(),
            drains: BTreeMap::new(),
            tasks: HashMap::new(),
            next_task: 0,
            restarting: BTreeSet::new(),
            leaving: BTreeMap::new(),
            agenda: Agenda::default(),
            changed: None,
            reading: false,
            commands: Vec::new(),
        }
    }

    /// Takes an event, and begins what can be begun then; gives what is to be done.
    pub(super) fn on(
        &mut self,
        event: LanesEvent<T, D>,
        moment: &LanesMoment<'_, T>,
    ) -> Vec<LanesCommand<T>> {
        match event {
            LanesEvent::Slots(SlotChange::Granted { slots, term: (term, takeover) }) => {
                self.take_over(&slots, &term, WorkEpoch::of(takeover));
            }
            LanesEvent::Slots(SlotChange::Releasing { slots, until, done }) => {
                self.drain(slots, until, &done);
            }
            LanesEvent::Slots(SlotChange::Lost { slots }) => self.end(&slots, None),
            LanesEvent::Changed(id) => self.changed = Some(id),
            LanesEvent::ChangesMissed => self.agenda.sweep_at_once(self.slots.keys().copied()),
            LanesEvent::Ended { task, failed } => self.take_end(task, failed, moment.now),
            LanesEvent::Read(read) => self.take_read(read, moment),
            LanesEvent::PageRead { read, after, failed } => {
                self.take_page(read, after, failed, moment);
            }
            // What has become due is begun below.
            LanesEvent::Rung => {}
        }
        self.end_overdue(moment.now);
        self.begin_reading(moment.now);
        std::mem::take(&mut self.commands)
    }

    /// Whether it can be told of a changed subscription; one that waits already goes first.
    pub(super) fn takes_change(&self) -> bool {
        self.changed.is_none()
    }

    /// When something is to be done, if nothing comes before.
    pub(super) fn wakes_at(&self) -> Timestamp {
        let read = if self.reading { None } else { self.agenda.next_at() };
        let drained = self.drains.keys().next().copied();
        [read, drained].into_iter().flatten().min().unwrap_or(Timestamp::MAX)
    }

    /// How many lanes are worked.
    pub(super) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// How many slots are ours, or were until what is worked there has ended.
    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    fn take_over(&mut self, slots: &Slots, term: &T, epoch: WorkEpoch) {
        let held = |slot: &u32| self.slots.get(slot).is_some_and(|it| !it.knows(epoch));
        // What is held ends before anything starts there anew.
        let held: Slots = slots.iter().filter(held).collect();
        self.end(&held, Some((term, epoch)));
        for slot in slots.iter() {
            if !self.slots.contains_key(&slot) {
                self.begin(slot, term.clone(), epoch);
            }
        }
    }

    fn begin(&mut self, slot: u32, term: T, epoch: WorkEpoch) {
        self.slots.insert(slot, SlotWork::begin(term, epoch));
        // A reserved slot has a queue once a subscription has it.
        if !self.numbers.is_reserved(slot) {
            self.listen(slot, Duration::ZERO);
        }
        self.agenda.sweep_at_once([slot]);
    }

    /// Listens to a slot's queue after a while.
    fn listen(&mut self, slot: u32, after: Duration) {
        let task = self.begin_task(TaskRole { slot, lane: None });
        if let Some(work) = self.slots.get_mut(&slot) {
            work.listener = Some(task);
        }
        self.commands.push(LanesCommand::Listen { slot, task, after });
    }

    fn begin_task(&mut self, role: TaskRole) -> u64 {
        let task = self.next_task;
        self.next_task += 1;
        self.tasks.insert(task, role);
        if let Some(work) = self.slots.get_mut(&role.slot) {
            work.tasks.insert(task);
        }
        task
    }

    /// Has slots take no more work and finish what is in flight by then. The others go on.
    fn drain(&mut self, slots: Slots, until: Timestamp, done: &D) {
        for slot in slots.iter() {
            let Some(work) = self.slots.get_mut(&slot) else { continue };
            if work.drain(until, done.clone()) {
                self.commands.extend(work.listener.map(LanesCommand::StopListening));
            }
        }
        let drained = self.lanes.iter().filter(|(_, worked)| slots.contains(worked.slot));
        self.commands.extend(drained.map(|(lane, _)| LanesCommand::Stop(*lane)));
        self.ended.retain(|_, ended| !slots.contains(ended.slot));
        slots.iter().for_each(|slot| self.vacate(slot));
        self.drains.entry(until).or_default().push(slots);
    }

    /// Ends what did not drain in time.
    fn end_overdue(&mut self, now: Timestamp) {
        while let Some(entry) = self.drains.first_entry().filter(|entry| *entry.key() <= now) {
            for slots in entry.remove() {
                let overdue =
                    |slot: &u32| self.slots.get(slot).is_some_and(|it| it.is_overdue(now));
                let overdue: Slots = slots.iter().filter(overdue).collect();
                if !overdue.is_empty() {
                    self.commands.push(LanesCommand::LogDropped);
                    self.end(&overdue, None);
                }
            }
        }
    }

    /// Ends slots at once: requests in flight are dropped, their outcome unknown. What is granted
    /// anew begins when nothing is left of them.
    fn end(&mut self, slots: &Slots, next: Option<(&T, WorkEpoch)>) {
        let commands = &mut self.commands;
        self.lanes.retain(|lane, worked| {
            let stays = !slots.contains(worked.slot);
            if !stays {
                commands.push(LanesCommand::Forget(*lane));
            }
            stays
        });
        self.ended.retain(|_, ended| !slots.contains(ended.slot));
        for slot in slots.iter() {
            if let Some(work) = self.slots.get_mut(&slot) {
                work.end(next.map(|(term, epoch)| (term.clone(), epoch)));
                self.commands.extend(work.tasks.iter().copied().map(LanesCommand::Abort));
                self.vacate(slot);
            }
        }
    }

    /// Gives a slot up of which nothing is left, or begins what it was granted for meanwhile.
    fn vacate(&mut self, slot: u32) {
        if !self.slots.get(&slot).is_some_and(SlotWork::is_over) {
            return;
        }
        if let Some((term, epoch)) = self.slots.remove(&slot).and_then(SlotWork::into_next) {
            self.begin(slot, term, epoch);
        } else if self.slots.is_empty() {
            self.agenda.clear();
        }
    }

    /// A lane ended because it was stopped, and its subscription may have changed again meanwhile, or
    /// something failed: it is read again, but not at once, for what ends as soon as it starts must not make
    /// us spin. Where the end was only the way to another beginning, nothing is waited for.
    fn take_end(&mut self, task: u64, failed: bool, now: Timestamp) {
        let Some(TaskRole { slot, lane }) = self.tasks.remove(&task) else { return };
        let its = |lane: &LaneId| self.lanes.get(lane).is_some_and(|worked| worked.task == task);
        let worked = lane.filter(its).and_then(|lane| self.lanes.remove(&lane));
        self.commands.extend(lane.filter(|_| worked.is_some()).map(LanesCommand::Forget));
        let last = |it: &LaneId| !self.works(it.subscription);
        let restarts = lane.filter(last).is_some_and(|it| self.restarting.remove(&it.subscription));
        let Some(work) = self.slots.get_mut(&slot) else { return };
        work.tasks.remove(&task);
        if !work.works() {
            self.vacate(slot);
        } else if let Some(LaneId { subscription, .. }) = lane {
            if let Some(WorkedLane { slot, lanes, .. }) = worked {
                let ended = self.ended.entry(subscription);
                ended.or_insert(EndedLanes { slot, lanes, failed }).failed |= failed;
            }
            if restarts {
                self.agenda.at_once(subscription);
            } else {
                self.read_later(subscription, now);
            }
        } else {
            self.listen(slot, AGAIN);
        }
    }

    /// Reads what is next, unless something is being read.
    fn begin_reading(&mut self, now: Timestamp) {
        while !self.reading {
            let slots = &self.slots;
            let held = || slots.keys().copied().collect();
            if let Some((slots, after)) = self.agenda.page(now, false, held) {
                self.read_page(&slots, after);
            } else if let Some(id) = self.changed.take().or_else(|| self.agenda.due(now)) {
                self.read_one(id);
            } else if let Some((slots, after)) = self.agenda.page(now, true, held) {
                self.read_page(&slots, after);
            } else {
                return;
            }
        }
    }

    fn read_page(&mut self, slots: &Slots, after: Option<SubscriptionId>) {
        // What was given up since need not be read.
        let slots = slots.iter().filter(|slot| self.slots.contains_key(slot)).collect();
        self.reading = true;
        self.commands.push(LanesCommand::ReadPage { slots, after });
    }

    fn read_one(&mut self, id: SubscriptionId) {
        // Changes of lanes that are not ours are not for us. A reserved slot may be theirs.
        let reserved =
            self.slots.keys().next_back().is_some_and(|it| self.numbers.is_reserved(*it));
        if reserved || self.slots.contains_key(&self.numbers.hashed(id)) {
            self.reading = true;
            self.commands.push(LanesCommand::ReadOne(id));
        }
    }

    /// Reads a subscription again in a while.
    fn read_later(&mut self, id: SubscriptionId, now: Timestamp) {
        self.agenda.later([id], now + AGAIN);
    }

    /// Whether any lane of a subscription is worked.
    fn works(&self, subscription: SubscriptionId) -> bool {
        self.lanes.range(lanes_of(subscription)).next().is_some()
    }
}

/// The names that lanes of one subscription may have.
fn lanes_of(subscription: SubscriptionId) -> RangeInclusive<LaneId> {
    LaneId::new(subscription, 0)..=LaneId::new(subscription, u16::MAX)
}
