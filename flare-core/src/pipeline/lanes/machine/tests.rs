//! The rules of a node's lanes, each on its own: the machine in a made-up world, in which slots come and go,
//! subscriptions change, tasks end when they like and stores answer when they like. What fails is shrunk to
//! the few events that matter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::{
    Epoch, NewResource, Resource, ResourceId, Subscription, SubscriptionSpec, SubscriptionStatus,
    Takeover,
};
use crate::ownership::SlotChange;
use crate::port::EpochGrant;

/// Slots that subscriptions are hashed onto, and one that is reserved.
const HASHED: u32 = 3;
const RESERVED: u32 = HASHED;
/// Subscriptions of the world, and how many are read at a time.
const SUBSCRIPTIONS: u8 = 4;
const PAGE: usize = 2;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_000_000 + millis)
}

fn id(number: u8) -> SubscriptionId {
    SubscriptionId::from_bytes([number + 1; 16])
}

fn numbers() -> SlotNumbers {
    SlotNumbers::new(HASHED, 1)
}

fn spec(lanes: u16) -> SubscriptionSpec {
    SubscriptionSpec::post("http://client.example/hook").lanes(lanes.into()).build().unwrap()
}

/// What may happen next.
#[derive(Debug, Clone)]
enum Act {
    /// Time passes.
    Pass(i64),
    /// Slots are granted, asked back within so many milliseconds, or lost.
    Grant(BTreeSet<u32>),
    Release(BTreeSet<u32>, i64),
    Lose(BTreeSet<u32>),
    /// A subscription changes, and the lanes are told, or are not.
    Change {
        number: u8,
        to: Setting,
        told: bool,
    },
    /// A change that was told arrives.
    Arrive,
    /// Changes were lost.
    Miss,
    /// A task ends.
    End {
        task: usize,
        failed: bool,
    },
    /// The store answers, or fails.
    Answer(bool),
    /// The slots are certainly this node's, or not.
    Trust(bool),
}

/// What a subscription becomes.
#[derive(Debug, Clone, Copy)]
enum Setting {
    Active(bool),
    Lanes(u16),
    Pinned(bool),
    Readable(bool),
}

/// A task at work.
#[derive(Debug)]
struct TestTask {
    slot: u32,
    lane: Option<(LaneId, u16, Epoch)>,
    stopped: bool,
    aborted: bool,
}

/// Slots that were asked back.
#[derive(Debug)]
struct TestRelease {
    slots: Slots,
    until: i64,
    done: Weak<()>,
    /// Tasks of before have lower numbers.
    before: u64,
}

/// What is being read.
#[derive(Debug)]
enum TestReading {
    One(SubscriptionId),
    Page(Slots, Option<SubscriptionId>),
    Lanes(Vec<UnpreparedLanes>),
}

struct World {
    machine: LaneSet<Epoch, Rc<()>>,
    now: i64,
    trusted: bool,
    epochs: u64,
    /// Slots that may be worked, and under which grant.
    ours: BTreeMap<u32, Epoch>,
    stored: BTreeMap<SubscriptionId, Subscription>,
    unreadable: BTreeSet<SubscriptionId>,
    changes: VecDeque<SubscriptionId>,
    tasks: BTreeMap<u64, TestTask>,
    reachable: BTreeSet<LaneId>,
    releases: Vec<TestRelease>,
    reading: Option<TestReading>,
    /// Epochs under which a lane of a subscription failed.
    failed: BTreeSet<(SubscriptionId, Epoch)>,
    /// With how many lanes, and in which slot, a subscription was worked under an epoch.
    numbered: BTreeMap<(SubscriptionId, Epoch), (u16, u32)>,
}

impl World {
    fn new() -> Self {
        let subscription = |number| {
            let resource = ResourceId::from_bytes([9; 16]);
            let mut made = Subscription::new(id(number), resource, spec(1), at(0));
            made.status = SubscriptionStatus::Active;
            (made.id, made)
        };
        Self {
            machine: LaneSet::new(numbers(), Duration::from_secs(60)),
            now: 0,
            trusted: true,
            epochs: 1,
            ours: BTreeMap::new(),
            stored: (0..SUBSCRIPTIONS).map(subscription).collect(),
            unreadable: BTreeSet::new(),
            changes: VecDeque::new(),
            tasks: BTreeMap::new(),
            reachable: BTreeSet::new(),
            releases: Vec::new(),
            reading: None,
            failed: BTreeSet::new(),
            numbered: BTreeMap::new(),
        }
    }

    fn epoch(&mut self) -> Epoch {
        self.epochs += 1;
        Epoch::new(self.epochs)
    }

    fn happens(&mut self, event: LanesEvent<Epoch, Rc<()>>) {
        let trusted = self.trusted;
        let moment =
            LanesMoment { now: at(self.now), random: 0.5, trusted: &|_: &Epoch, _| trusted };
        for command in self.machine.on(event, &moment) {
            self.obey(command);
        }
        self.check();
    }

    fn obey(&mut self, command: LanesCommand<Epoch>) {
        match command {
            LanesCommand::Listen { slot, task, .. } => {
                assert!(self.ours.contains_key(&slot), "it listens in a slot of others");
                let listens = |it: &TestTask| it.slot == slot && it.lane.is_none();
                assert!(!self.tasks.values().any(listens), "two listen to one queue");
                self.begin(task, slot, None);
            }
            LanesCommand::Start(started) => self.start(&started),
            LanesCommand::StopListening(task) => {
                self.tasks.get_mut(&task).unwrap().stopped = true;
            }
            LanesCommand::Stop(lane) => {
                assert!(self.reachable.contains(&lane), "it stops what it cannot reach");
                let works = |it: &&mut TestTask| it.lane.is_some_and(|(of, ..)| of == lane);
                self.tasks.values_mut().filter(works).for_each(|it| it.stopped = true);
            }
            LanesCommand::Forget(lane) => assert!(self.reachable.remove(&lane)),
            LanesCommand::Abort(task) => self.tasks.get_mut(&task).unwrap().aborted = true,
            LanesCommand::StoreLeft(left) => self.store_left(&left),
            LanesCommand::ReadOne(id) => self.read(TestReading::One(id)),
            LanesCommand::ReadPage { slots, after } => self.read(TestReading::Page(slots, after)),
            LanesCommand::Prepare(lanes) => self.read(TestReading::Lanes(lanes)),
            LanesCommand::Update(subscription) => {
                let its = |lane: &LaneId| lane.subscription == subscription.id;
                assert!(self.reachable.iter().any(its), "nothing to be updated");
            }
            LanesCommand::LogDropped | LanesCommand::CheckQueues(_) => {}
        }
    }

    fn read(&mut self, reading: TestReading) {
        assert!(self.reading.replace(reading).is_none(), "it reads two things at a time");
    }

    fn begin(&mut self, task: u64, slot: u32, lane: Option<(LaneId, u16, Epoch)>) {
        let begun = TestTask { slot, lane, stopped: false, aborted: false };
        assert!(self.tasks.insert(task, begun).is_none(), "one number, two tasks");
    }

    fn start(&mut self, started: &StartedLanes<Epoch>) {
        let (id, slot, epoch) = (started.subscription.id, started.slot, started.epoch.epoch);
        let count = started.subscription.spec.delivery().lanes();
        assert_eq!(self.ours.get(&slot), Some(&started.term), "a slot of others, or of before");
        assert!(epoch >= started.term && epoch > started.subscription.least_epoch);
        let fresh = epoch != started.term && !self.numbered.contains_key(&(id, epoch));
        assert!(!fresh || self.trusted, "drawn while the slot may be another's");
        assert!(started.epoch.takeover.epoch <= epoch);
        assert!(!self.failed.contains(&(id, epoch)), "what one had sent when it failed is unknown");
        let latest = self.numbered.keys().filter(|(of, _)| *of == id).map(|(_, at)| *at).max();
        assert!(latest <= Some(epoch), "fenced by what its lanes wrote before");
        let numbered = *self.numbered.entry((id, epoch)).or_insert((count, slot));
        assert_eq!(numbered, (count, slot), "other documents under the same epoch");
        for task in self.tasks.values() {
            let Some((lane, lanes, _)) = task.lane.filter(|it| it.0.subscription == id) else {
                continue;
            };
            let same = lanes == count && task.slot == slot;
            assert!(
                same && !started.lanes.iter().any(|it| it.0 == lane),
                "it starts before a stop"
            );
        }
        for (lane, task) in &started.lanes {
            assert!(self.reachable.insert(*lane) && lane.shard < count);
            self.begin(*task, slot, Some((*lane, count, epoch)));
        }
    }

    /// What is stored of a subscription that has left its slot.
    fn store_left(&mut self, left: &Subscription) {
        let works = |it: &TestTask| it.lane.is_some_and(|it| it.0.subscription == left.id);
        let aborted = |it: &TestTask| it.aborted;
        assert!(!self.tasks.values().any(|it| works(it) && !aborted(it)), "it has not left");
        assert!(self.trusted && self.ours.contains_key(&left.moving_from.unwrap()));
        let epoch = self.epoch();
        let stored = self.stored.get_mut(&left.id).unwrap();
        if stored.generation == left.generation {
            (stored.moving_from, stored.least_epoch) = (None, epoch);
            stored.generation = stored.generation.next();
        }
        self.changes.push_back(left.id);
    }

    /// What is so after every event.
    fn check(&self) {
        assert!(self.machine.wakes_at() > at(self.now), "it would wake for ever");
        assert_eq!(self.machine.lane_count(), self.reachable.len());
        let worked = self.tasks.values().filter(|it| !it.aborted).filter_map(|it| it.lane);
        assert_eq!(worked.map(|it| it.0).collect::<BTreeSet<_>>(), self.reachable);
        for release in &self.releases {
            let before = self.tasks.range(..release.before).map(|(_, task)| task);
            let left: Vec<_> = before.filter(|it| release.slots.contains(it.slot)).collect();
            let told = release.done.strong_count() == 0;
            assert!(!told || left.is_empty(), "given up while something is left: {left:?}");
            let dropped = left.iter().all(|it| it.aborted);
            assert!(release.until > self.now || dropped, "not drained in time: {left:?}");
        }
        for task in self.tasks.values().filter(|it| !it.aborted && !it.stopped) {
            assert!(self.ours.contains_key(&task.slot), "a slot of others is worked: {task:?}");
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Pass(millis) => {
                let until = self.now + millis;
                while self.machine.wakes_at() <= at(until) {
                    self.now = self.now.max(self.wakes_at());
                    self.happens(LanesEvent::Rung);
                }
                self.now = until;
            }
            Act::Grant(slots) => {
                let epoch = self.epoch();
                self.ours.extend(slots.iter().map(|slot| (*slot, epoch)));
                let takeover = Takeover { epoch, at: at(self.now) };
                let slots = slots.iter().copied().collect();
                self.happens(LanesEvent::Slots(SlotChange::Granted {
                    slots,
                    term: (epoch, takeover),
                }));
            }
            Act::Release(slots, millis) => {
                self.ours.retain(|slot, _| !slots.contains(slot));
                let (done, until) = (Rc::new(()), self.now + millis);
                let slots: Slots = slots.iter().copied().collect();
                let before = self.tasks.keys().next_back().map_or(0, |last| last + 1);
                let (weak, held) = (Rc::downgrade(&done), slots.clone());
                self.releases.push(TestRelease { slots: held, until, done: weak, before });
                self.happens(LanesEvent::Slots(SlotChange::Releasing {
                    slots,
                    until: at(until),
                    done,
                }));
            }
            Act::Lose(slots) => {
                self.ours.retain(|slot, _| !slots.contains(slot));
                let slots: Slots = slots.iter().copied().collect();
                self.happens(LanesEvent::Slots(SlotChange::Lost { slots: slots.clone() }));
                let lost = |it: &&TestTask| slots.contains(it.slot);
                assert!(self.tasks.values().filter(lost).all(|it| it.aborted), "it goes on");
            }
            Act::Change { number, to, told } => self.change(id(*number), *to, *told),
            Act::Arrive => {
                if self.machine.takes_change()
                    && let Some(id) = self.changes.pop_front()
                {
                    self.happens(LanesEvent::Changed(id));
                }
            }
            Act::Miss => {
                self.changes.clear();
                self.happens(LanesEvent::ChangesMissed);
            }
            Act::End { task, failed } => {
                let number = self.tasks.keys().nth(task % self.tasks.len().max(1)).copied();
                number.into_iter().for_each(|number| self.end(number, *failed));
            }
            Act::Answer(well) => self.answer(*well),
            Act::Trust(trusted) => self.trusted = *trusted,
        }
    }

    fn wakes_at(&self) -> i64 {
        self.machine.wakes_at().unix_nanos() / 1_000_000 - 1_000_000
    }

    fn change(&mut self, id: SubscriptionId, to: Setting, told: bool) {
        let stored = self.stored.get_mut(&id).unwrap();
        let slot = numbers().of(stored);
        match to {
            Setting::Active(true) => stored.status = SubscriptionStatus::Active,
            Setting::Active(false) => stored.status = SubscriptionStatus::Paused,
            Setting::Lanes(lanes) => stored.spec = spec(lanes),
            Setting::Readable(readable) if readable => self.unreadable.retain(|it| *it != id),
            Setting::Readable(_) => self.unreadable.extend([id]),
            // Not before it has left the one before.
            Setting::Pinned(_) if stored.moving_from.is_some() => return,
            Setting::Pinned(pinned) => {
                stored.slot = pinned.then_some(RESERVED);
                stored.moving_from = Some(slot).filter(|_| numbers().of(stored) != slot);
            }
        }
        stored.generation = stored.generation.next();
        if told {
            self.changes.push_back(id);
        }
    }

    /// A lane may end by itself, a listener only if it is told to or fails.
    fn end(&mut self, number: u64, failed: bool) {
        let task = &self.tasks[&number];
        let failed = failed && !task.aborted;
        if task.lane.is_none() && !failed && !task.stopped && !task.aborted {
            return;
        }
        let task = self.tasks.remove(&number).unwrap();
        if let Some((lane, _, epoch)) = task.lane.filter(|_| failed) {
            self.failed.insert((lane.subscription, epoch));
        }
        self.happens(LanesEvent::Ended { task: number, failed });
    }

    fn answer(&mut self, well: bool) {
        let Some(reading) = self.reading.take() else { return };
        let found = |it: &Subscription| match self.unreadable.contains(&it.id) {
            true => ReadSubscription::Unreadable(it.id),
            false => {
                let subscription = Arc::new(it.clone());
                ReadSubscription::Found { subscription, prepared: None }
            }
        };
        let event = match reading {
            TestReading::One(id) if well => {
                let read = self.stored.get(&id).map_or(ReadSubscription::Gone(id), found);
                LanesEvent::Read(vec![read])
            }
            TestReading::One(id) => LanesEvent::Read(vec![ReadSubscription::Failed(id)]),
            TestReading::Page(slots, after) => {
                let rest = self.stored.values().filter(|it| Some(it.id) > after);
                let page: Vec<&Subscription> = rest.take(if well { PAGE } else { 1 }).collect();
                let last = page.last().map(|it| it.id).or(after);
                let after = last.filter(|_| !well || page.len() == PAGE);
                let its = |it: &Subscription| [Some(numbers().of(it)), it.moving_from];
                let ours = |it: &&&Subscription| {
                    its(it).into_iter().flatten().any(|slot| slots.contains(slot))
                };
                let read = page.iter().filter(ours).map(|it| found(it)).collect();
                LanesEvent::PageRead { read, after, failed: !well }
            }
            TestReading::Lanes(lanes) => {
                LanesEvent::Read(lanes.into_iter().map(|it| self.prepare(it, well)).collect())
            }
        };
        self.happens(event);
    }

    fn prepare(&mut self, lanes: UnpreparedLanes, well: bool) -> ReadSubscription {
        let UnpreparedLanes { subscription, draws } = lanes;
        if !well {
            return ReadSubscription::Failed(subscription.id);
        }
        let drawn = draws.then(|| EpochGrant { epoch: self.epoch(), at: at(self.now) });
        let prepared = Some(PreparedLanes { resource: resource(), drawn });
        ReadSubscription::Found { subscription, prepared }
    }

    /// Everything goes well from now on, until nothing more happens.
    fn calm_down(&mut self) {
        self.trusted = true;
        self.act(&Act::Miss);
        for _ in 0..2_000 {
            let ends = |it: &TestTask| it.stopped || it.aborted;
            let ended = self.tasks.iter().find(|(_, it)| ends(it)).map(|(number, _)| *number);
            match ended {
                _ if self.reading.is_some() => self.answer(true),
                Some(number) => self.end(number, false),
                None if !self.changes.is_empty() => self.act(&Act::Arrive),
                None if self.wakes_at() <= self.now + 5_000 => self.act(&Act::Pass(1_000)),
                None => return,
            }
        }
        panic!("it does not come to rest: {:?}", self.machine);
    }
}

fn resource() -> Arc<Resource> {
    let resource = NewResource::new("http://api.example/docs/{id}").change_field("revision");
    let (endpoint, change) = resource.check().unwrap();
    Arc::new(Resource::new(ResourceId::from_bytes([9; 16]), endpoint, change, at(0)))
}

fn act() -> impl Strategy<Value = Act> {
    let slots = || prop::collection::btree_set(0..=RESERVED, 1..4);
    let setting = prop_oneof![
        any::<bool>().prop_map(Setting::Active),
        (1..4_u16).prop_map(Setting::Lanes),
        any::<bool>().prop_map(Setting::Pinned),
        any::<bool>().prop_map(Setting::Readable),
    ];
    let change = (0..SUBSCRIPTIONS, setting, prop::bool::weighted(0.8));
    prop_oneof![
        3 => (1..3_000_i64).prop_map(Act::Pass),
        3 => slots().prop_map(Act::Grant),
        1 => (slots(), 1..4_000_i64).prop_map(|(slots, millis)| Act::Release(slots, millis)),
        1 => slots().prop_map(Act::Lose),
        5 => change.prop_map(|(number, to, told)| Act::Change { number, to, told }),
        5 => Just(Act::Arrive),
        1 => Just(Act::Miss),
        8 => (0..20_usize, prop::bool::weighted(0.2)).prop_map(|(task, failed)| Act::End { task, failed }),
        10 => prop::bool::weighted(0.9).prop_map(Act::Answer),
        1 => prop::bool::weighted(0.7).prop_map(Act::Trust),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    /// P6 within a node, and P1 for what it owns: whatever happens in whatever order, no lane is worked twice,
    /// nor in a slot of others, nor under an epoch that means something else; what is to be given up is, in
    /// time; and once all is well again the lanes that are worked are those that should be.
    #[test]
    fn whatever_happens_it_works_only_what_it_may_and_all_that_it_must(
        acts in prop::collection::vec(act(), 0..200),
    ) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
        }
        world.calm_down();
        for stored in world.stored.values() {
            let (slot, lanes) = (numbers().of(stored), stored.spec.delivery().lanes());
            let readable = !world.unreadable.contains(&stored.id);
            let from = stored.moving_from.filter(|_| readable);
            let left = from.is_none_or(|from| !world.ours.contains_key(&from));
            prop_assert!(left, "it is never told that {stored:?} has left");
            let active = stored.status == SubscriptionStatus::Active && stored.moving_from.is_none();
            let wanted = active && readable && world.ours.contains_key(&slot);
            let wanted = if wanted { lanes } else { 0 };
            let worked: Vec<_> = world.tasks.values().filter_map(|it| it.lane).collect();
            let worked: Vec<_> = worked.iter().filter(|it| it.0.subscription == stored.id).collect();
            prop_assert!(worked.iter().all(|it| it.1 == lanes), "{worked:?} of {stored:?}");
            prop_assert_eq!(worked.len(), usize::from(wanted), "{:?}", stored);
        }
        for release in &world.releases {
            prop_assert_eq!(release.done.strong_count(), 0, "never told that it is given up");
        }
        let listens = |slot: &u32| world.tasks.values().any(|it| it.slot == *slot && it.lane.is_none());
        let hashed = world.ours.keys().filter(|slot| **slot < HASHED);
        prop_assert!(hashed.into_iter().all(listens), "not all queues are listened to");
    }
}

/// A node that has all slots and works one lane of each subscription.
fn working() -> World {
    let mut world = World::new();
    world.act(&Act::Grant((0..=RESERVED).collect()));
    world.calm_down();
    assert_eq!(world.reachable.len(), usize::from(SUBSCRIPTIONS));
    world
}

#[test]
fn a_lane_that_failed_begins_anew_under_an_epoch_of_its_own_after_a_while() {
    let mut world = working();
    let works = |it: &TestTask| it.lane.is_some_and(|(lane, ..)| lane.subscription == id(0));
    let number = *world.tasks.iter().find(|(_, it)| works(it)).unwrap().0;
    let granted = world.ours[&numbers().hashed(id(0))];
    world.end(number, true);
    assert!(world.reading.is_none(), "not at once: it may fail again");
    world.calm_down();
    let again = world.tasks.values().find(|it| works(it)).and_then(|it| it.lane).unwrap();
    assert!(again.2 > granted);
}

#[test]
fn with_another_number_of_lanes_all_end_before_any_starts() {
    let mut world = working();
    world.change(id(0), Setting::Lanes(3), true);
    world.act(&Act::Arrive);
    world.answer(true);
    let stopped: Vec<u64> =
        world.tasks.iter().filter(|(_, it)| it.stopped).map(|(number, _)| *number).collect();
    assert_eq!((stopped.len(), world.reachable.len()), (1, usize::from(SUBSCRIPTIONS)));
    // Without a pause: the end was only the way to another beginning.
    world.end(stopped[0], false);
    world.answer(true);
    world.answer(true);
    assert_eq!(world.reachable.len(), usize::from(SUBSCRIPTIONS) + 2);
}

#[test]
fn what_is_granted_anew_begins_when_the_former_work_is_gone() {
    let mut world = working();
    let slots: BTreeSet<u32> = [numbers().hashed(id(0))].into();
    let before: Vec<u64> =
        world.tasks.iter().filter(|(_, it)| slots.contains(&it.slot)).map(|it| *it.0).collect();
    world.act(&Act::Grant(slots));
    assert!(before.iter().all(|number| world.tasks[number].aborted));
    let last = *world.tasks.keys().next_back().unwrap();
    for number in &before {
        assert_eq!(*world.tasks.keys().next_back().unwrap(), last, "{number} is not gone yet");
        world.end(*number, false);
    }
    assert!(*world.tasks.keys().next_back().unwrap() > last);
}

#[test]
fn a_change_is_read_between_two_pages_of_a_sweep() {
    let mut world = working();
    world.act(&Act::Miss);
    assert!(matches!(world.reading, Some(TestReading::Page(..))));
    world.change(id(3), Setting::Active(false), true);
    world.act(&Act::Arrive);
    world.answer(true);
    assert!(matches!(world.reading, Some(TestReading::One(it)) if it == id(3)));
    world.answer(true);
    assert!(matches!(world.reading, Some(TestReading::Page(_, Some(_)))));
}
