//! A lane's rules, each on its own: the machine in a made-up world, whose events come in any order and
//! whose answers take any time. A million events in seconds; what fails is shrunk to the few that matter.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::model::subscription::{BatchOptions, Mode, RetryPolicy};
use crate::model::{
    Action, Applied, Content, DocumentKey, DocumentUrl, Epoch, FilterVerdict, Generation, LaneId,
    LaneState, Present, ResourceId, Revision, RowEffect, Spread, SubscriptionId, SubscriptionSpec,
    Takeover, Telling, Version,
};
use crate::pipeline::compose::id_of;
use crate::pipeline::lane::settler::{Flushed, Unstored};
use crate::pipeline::lane::suspender::Suspended;
use crate::pipeline::reading::size;
use crate::port::DeliveryOutcome;
use crate::port::{FailureKind, Reply, RetryAfter};

/// Documents of the world, and how much of one is counted.
const DOCUMENTS: u32 = 6;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_000_000 + millis)
}

fn lane() -> LaneId {
    LaneId::new(SubscriptionId::from_bytes([1; 16]), 0)
}

/// Made once: a URL is read more slowly than a lane decides.
fn url(number: u32) -> DocumentUrl {
    static URLS: LazyLock<Vec<DocumentUrl>> = LazyLock::new(|| {
        let text = |number| format!("http://api.example/docs/{number}");
        (0..DOCUMENTS).map(|number| DocumentUrl::parse(&text(number)).unwrap()).collect()
    });
    URLS[number as usize].clone()
}

fn key(number: u32) -> DocumentKey {
    DocumentKey::new(ResourceId::from_bytes([2; 16]), url(number))
}

/// A client's limits, as a world is made with.
#[derive(Debug, Clone)]
struct Limits {
    concurrency: u32,
    /// One request in so many milliseconds.
    rate: Option<u64>,
    retries: u32,
    batch: Option<BatchOptions>,
    /// A document that no request which tells of it gets through with.
    poison: Option<u32>,
    /// A document is told at most once in so many milliseconds.
    min_interval: Option<u64>,
    /// It has a filter, which refuses every third version.
    filtered: bool,
}

impl Limits {
    fn plain() -> Self {
        Self {
            concurrency: 2,
            rate: None,
            retries: 3,
            batch: None,
            poison: None,
            min_interval: None,
            filtered: false,
        }
    }

    fn batched(batch: BatchOptions) -> Self {
        Self { batch: Some(batch), ..Self::plain() }
    }

    fn most(&self) -> usize {
        self.batch.map_or(1, |batch| batch.max() as usize)
    }

    /// What a lane may have loaded or unstored.
    fn room(&self) -> usize {
        (self.concurrency as usize * 4 * self.most()).clamp(16, 512.max(2 * self.most()))
    }
}

/// What the filter says of a version.
fn verdict(filtered: bool, document: &Document) -> FilterVerdict {
    FilterVerdict::of(!filtered || document.version.revision().get() % 3 != 0)
}

fn subscription(limits: &Limits, mode: Mode, generation: u64) -> Arc<Subscription> {
    let retry = RetryPolicy::builder()
        .num_retries(limits.retries)
        .min_delay_target(Duration::from_secs(1))
        .max_delay_target(Duration::from_secs(3))
        .build()
        .unwrap();
    let mut spec = SubscriptionSpec::post("http://client.example/hook")
        .concurrency(limits.concurrency)
        .mode(mode)
        .retry(retry);
    if let Some(millis) = limits.min_interval {
        spec = spec.min_interval(Duration::from_millis(millis));
    }
    if limits.filtered {
        spec = spec.filter("revision % 3 != 0");
    }
    if let Some(millis) = limits.rate {
        spec = spec.rate(1, Duration::from_millis(millis));
    }
    if let Some(batch) = limits.batch {
        spec = spec.batch(batch);
    }
    let spec = spec.build().unwrap();
    let resource = ResourceId::from_bytes([2; 16]);
    let mut made = Subscription::new(lane().subscription, resource, spec, at(0));
    made.status = SubscriptionStatus::Active;
    made.generation = Generation::new(generation);
    Arc::new(made)
}

/// What counts the documents that a lane holds.
#[derive(Debug)]
struct Counted(Rc<Cell<usize>>);

impl Counted {
    fn new(held: &Rc<Cell<usize>>) -> Self {
        held.set(held.get() + 1);
        Self(Rc::clone(held))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A notification under way.
#[derive(Debug, Clone)]
struct Told {
    of: u32,
    version: Version,
    id: String,
}

/// What may happen next.
#[derive(Debug, Clone)]
enum Act {
    /// Time passes.
    Pass(u64),
    /// A document changes, or is deleted; the lane is woken, or handed what was written.
    Change {
        number: u32,
        gone: bool,
        handed: bool,
    },
    /// The oldest thing the lane waits for of this kind answers.
    Load(bool),
    /// There is no room for what it wants to read.
    NoRoom(bool),
    Store(bool),
    Note(bool),
    Permits(usize),
    /// A request ends.
    Answer {
        which: usize,
        how: u8,
    },
    /// The slot is trusted, or not.
    Trust(bool),
    /// Newer settings, in this mode.
    Settings(Mode),
    /// The client of a passive subscription asks for what waits.
    Demand,
    /// The suspension that the lane waits for is stored, fails, or is not needed.
    Suspend(u8),
    /// The lane is to end; another begins where it has.
    Stop,
    /// The counters are wanted.
    Ask,
}

impl Act {
    /// One of them, by a number: far cheaper to draw, and to shrink, than a choice of strategies. What is simplest
    /// has the smallest numbers.
    fn of(number: u32) -> Self {
        let (kind, rest) = (number % 64, number / 64);
        let well = rest % 10 < 9;
        match kind {
            0..=6 => Self::Pass(u64::from(rest % 400)),
            7 => Self::Pass(u64::from(1_000 + rest % 4_000)),
            8..=15 => Self::Change {
                number: rest % DOCUMENTS,
                gone: (rest / 8) % 5 == 4,
                handed: (rest / 64) % 2 == 1,
            },
            16..=26 => Self::Load(well),
            27 => Self::NoRoom(rest % 2 == 1),
            28..=37 => Self::Store(well),
            38..=41 => Self::Note(well),
            42..=48 => Self::Permits(1 + rest as usize % 3),
            49..=57 => Self::Answer { which: rest as usize % 8, how: (rest / 8 % 20) as u8 },
            58 => Self::Trust(rest % 5 < 4),
            59 => Self::Settings(if rest % 3 == 2 { Mode::Passive } else { Mode::Active }),
            60 => Self::Demand,
            61 => Self::Suspend((rest % 3) as u8),
            62 if rest % 4 == 0 => Self::Stop,
            _ => Self::Ask,
        }
    }
}

fn act() -> impl Strategy<Value = Act> {
    any::<u32>().prop_map(Act::of)
}

/// A store, a client and a lane between them.
struct World {
    machine: Machine<Counted>,
    limits: Limits,
    now: i64,
    trusted: bool,
    newest: Arc<Subscription>,
    rows: BTreeMap<u32, Row>,
    documents: BTreeMap<u32, Document>,
    revision: i64,
    held: Rc<Cell<usize>>,
    held_until: Timestamp,
    /// Under which epoch the lane is worked, and whether it is to end.
    epoch: Epoch,
    stop: bool,
    /// Its state as it was last stored.
    state: LaneState,
    /// What the lane waits for.
    loading: Option<(usize, Busy, Arc<Subscription>)>,
    suspending: bool,
    storing: Option<Vec<Unstored>>,
    noting: bool,
    asks: Option<usize>,
    permits: usize,
    /// Requests under way: what each is about.
    requests: BTreeMap<u64, Vec<Told>>,
    /// Rows of requests that were refused as a whole: they have used up no attempt.
    spared: BTreeSet<u32>,
    halved: BTreeSet<u32>,
    /// There was no memory when rows were last looked for.
    crowded: bool,
    /// What the client was told last of each document, and acknowledged.
    told: HashMap<u32, Version>,
    /// And when.
    took_at: HashMap<u32, Timestamp>,
    /// When requests were made.
    made: Vec<Timestamp>,
    stored_at: Option<Timestamp>,
}

impl World {
    fn new(limits: Limits) -> Self {
        let newest = subscription(&limits, Mode::Active, 1);
        let (epoch, state) = (Epoch::new(7), LaneState::new(lane()));
        let mut world = Self {
            machine: machine(epoch, 0, &newest, &state),
            epoch,
            stop: false,
            state,
            suspending: false,
            took_at: HashMap::new(),
            limits,
            now: 0,
            trusted: true,
            newest,
            rows: BTreeMap::new(),
            documents: BTreeMap::new(),
            revision: 0,
            held: Rc::default(),
            held_until: Timestamp::EPOCH,
            loading: None,
            storing: None,
            noting: false,
            asks: None,
            permits: 0,
            requests: BTreeMap::new(),
            spared: BTreeSet::new(),
            halved: BTreeSet::new(),
            crowded: false,
            told: HashMap::new(),
            made: Vec::new(),
            stored_at: None,
        };
        world.happens(LaneEvent::Begun);
        world
    }

    fn moment(&self) -> Moment {
        Moment {
            now: at(self.now),
            trusted: self.trusted,
            stop: self.stop,
            held_until: self.held_until,
            restored: None,
            newest: Arc::clone(&self.newest),
            random: 0.5,
            listened: false,
        }
    }

    fn happens(&mut self, event: LaneEvent<Counted>) {
        let commands = self.machine.on(event, &self.moment());
        commands.into_iter().for_each(|command| self.obey(command));
        self.check();
    }

    fn obey(&mut self, command: Command<Counted>) {
        match command {
            Command::Load { window, busy, subscription, .. } => {
                let newest = self.machine.subscription.generation;
                assert_eq!(subscription.generation, newest, "read under old settings");
                assert!(self.loading.is_none(), "it reads twice at a time");
                assert!(window > 0);
                self.loading = Some((window, busy, subscription));
            }
            Command::StopLoading => self.loading = None,
            Command::AskPermits(wanted) => {
                assert!(
                    self.asks.is_none() && self.permits == 0,
                    "it has permits, or asked for them"
                );
                self.asks = Some(wanted);
            }
            Command::ReturnPermits => self.permits = 0,
            Command::KeepPermits => assert!(self.permits > 0),
            Command::StopAsking => self.asks = None,
            Command::StopSuspending => self.suspending = false,
            Command::Send { number, subscription, told } => {
                let told = told.iter().map(|it| (&it.document, it.telling)).collect();
                self.send(number, &subscription, told);
            }
            Command::Hold(until) => self.held_until = self.held_until.max(until),
            Command::Store(batch) => {
                assert!(self.storing.is_none() && !batch.is_empty());
                let room = self.limits.room();
                let soon = self
                    .stored_at
                    .is_some_and(|before| at(self.now) - before < Duration::from_millis(10));
                let more = !self.requests.is_empty() || self.machine.ready.front().is_some();
                let probing = self.machine.record.health().is_probing();
                let excused = probing || self.machine.is_ending();
                assert!(!soon || !more || batch.len() * 2 >= room || excused, "it does not gather");
                self.stored_at = Some(at(self.now));
                batch.iter().for_each(|unstored| self.check_spared(unstored));
                self.storing = Some(batch);
            }
            Command::Note(state) => {
                assert!(!self.noting);
                (self.noting, self.state) = (true, *state);
            }
            Command::Suspend { .. } => {
                assert!(!self.suspending && self.trusted);
                self.suspending = true;
            }
            Command::Report(_) | Command::Log(_) => {}
        }
    }

    /// What was refused as a whole uses up no attempt.
    fn check_spared(&mut self, unstored: &Unstored) {
        let of = self.number(&unstored.update.key.url);
        if !self.spared.remove(&of) {
            return;
        }
        let row = &self.rows[&of];
        let RowEffect::Retry { version, attempts, due, .. } = &unstored.update.effect else {
            panic!("{:?} of a whole", unstored.update.effect)
        };
        let before = if row.attempted == Some(*version) { row.attempts } else { 0 };
        assert_eq!((*attempts, *due <= at(self.now)), (before, true), "{row:?}");
    }

    /// P2, P4, probing, holds and pace: what may be sent at all.
    fn send(&mut self, number: u64, under: &Subscription, told: Vec<(&Document, Telling)>) {
        assert!(self.trusted, "the slot is not certainly its own");
        assert!(!self.stop && !self.suspending, "it is to end, or to be suspended first");
        assert!(self.permits > 0, "it has no permit");
        self.permits -= 1;
        assert!(at(self.now) >= self.held_until, "the client wants to be left alone");
        assert!((1..=self.limits.most()).contains(&told.len()), "{} at once", told.len());
        let mut notifications: Vec<Told> = Vec::new();
        for (document, telling) in told {
            let of = self.number(&document.key.url);
            let mut flying = self.requests.values().flatten().chain(&notifications);
            assert!(flying.all(|other| other.of != of), "two at a time of {of}");
            assert!(self.told.get(&of) < Some(&telling.version), "backwards: {of}");
            let row = &self.rows[&of];
            assert!(row.is_pending() && row.due <= at(self.now), "it is not due: {row:?}");
            assert!(row.demanded || under.spec.mode() == Mode::Active, "not asked for: {row:?}");
            let refused = verdict(self.limits.filtered, document) == FilterVerdict::Refuses;
            assert!(!refused || telling.action == Action::Delete, "refused: {telling:?}");
            self.check_interval(of, row);
            let id = id_of(lane().subscription, &document.key.url, telling);
            notifications.push(Told { of, version: telling.version, id });
        }
        self.check_gathered(&notifications);
        let health = self.machine.record.health();
        // What it was before this request, which the machine has counted already.
        let most = if health.is_probing() { 1 } else { self.limits.concurrency as usize };
        if health.is_probing() {
            assert!(self.requests.len() < most.max(1) || self.requests.is_empty());
            assert!(health.probe_at().is_none_or(|probe| probe <= at(self.now)), "too early");
            assert_eq!(notifications.len(), 1, "a probe is of one");
        }
        assert!(self.requests.len() < self.limits.concurrency as usize, "more than it takes");
        self.requests.insert(number, notifications);
        self.made.push(at(self.now));
        if let Some(millis) = self.limits.rate
            && let [.., before, last] = &self.made[..]
        {
            assert!(*last - *before >= Duration::from_millis(millis), "faster than its rate");
        }
    }

    /// A document is told again only after its interval, unless it is tried again.
    fn check_interval(&self, of: u32, row: &Row) {
        if let (Some(interval), Some(took)) = (self.limits.min_interval, self.took_at.get(&of))
            && row.attempts == 0
        {
            let next = *took + Duration::from_millis(interval);
            assert!(next <= at(self.now), "too soon after {took}: {row:?}");
        }
    }

    /// A request that is not full is made only when one of its rows has waited long enough.
    fn check_gathered(&self, told: &[Told]) {
        let Some(batch) = self.limits.batch else { return };
        let wait = batch.waits().unwrap_or_default();
        let waited = told.iter().any(|it| self.rows[&it.of].due + wait <= at(self.now));
        // What was refused as a whole goes in smaller requests, which are full sooner.
        let halved = told.iter().all(|it| self.halved.contains(&it.of));
        let probes = self.machine.record.health().is_probing();
        let full = told.len() == self.limits.most() || batch.bytes() == 1_024 && told.len() >= 3;
        let excused = halved || probes || self.crowded;
        assert!(waited || full || excused, "it does not gather: {told:?}");
    }

    fn number(&self, url: &DocumentUrl) -> u32 {
        url.as_str().rsplit('/').next().unwrap().parse().unwrap()
    }

    /// What holds after every event.
    fn check(&self) {
        assert!(self.machine.ready.len() <= self.limits.room() + DOCUMENTS as usize);
        assert!(self.held.get() <= self.machine.ready.len());
        for ready in &self.machine.ready {
            assert!(self.machine.busy.contains_key(&ready.row.key.url));
        }
        for Told { of, .. } in self.requests.values().flatten() {
            assert!(
                self.machine.busy.contains_key(&url(*of)),
                "it does not know that it works on {of}"
            );
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Pass(millis) => self.pass(millis),
            Act::Change { number, gone, handed } => self.change(number, gone, handed),
            Act::Load(well) => self.load(well),
            Act::NoRoom(at_all) => {
                // For nothing at all only while the lane holds some.
                if (at_all || self.held.get() > 0) && self.loading.take().is_some() {
                    self.crowded = true;
                    self.happens(LaneEvent::NoRoom { at_all });
                }
            }
            Act::Store(well) => self.store(well),
            Act::Note(well) => {
                if std::mem::take(&mut self.noting) {
                    self.happens(if well {
                        LaneEvent::Noted(Applied::Done)
                    } else {
                        LaneEvent::NoteFailed
                    });
                }
            }
            Act::Permits(count) => {
                if let Some(wanted) = self.asks.take() {
                    self.permits = count.min(wanted);
                    self.happens(LaneEvent::Permits(Some(self.permits)));
                }
            }
            Act::Answer { which, how } => self.answer(which, how),
            Act::Trust(trusted) => self.trust(trusted),
            Act::Settings(mode) => self.settings(mode),
            Act::Demand => {
                let now = at(self.now);
                self.rows.values_mut().for_each(|row| _ = row.demand(now));
                self.happens(LaneEvent::Woken);
            }
            Act::Suspend(how) => self.suspend(how),
            Act::Stop => {
                self.stop = true;
                self.happens(LaneEvent::Woken);
            }
            Act::Ask => {
                if self.machine.may_be_asked() {
                    self.happens(LaneEvent::Asked);
                }
            }
        }
    }

    fn settings(&mut self, mode: Mode) {
        let generation = self.newest.generation.get() + 1;
        self.newest = subscription(&self.limits, mode, generation);
        self.happens(LaneEvent::Woken);
    }

    fn suspend(&mut self, how: u8) {
        if !std::mem::take(&mut self.suspending) {
            return;
        }
        let event = match how {
            0 => {
                let mut suspended = (*self.newest).clone();
                suspended.status = SubscriptionStatus::Suspended;
                suspended.generation = Generation::new(suspended.generation.get() + 1);
                self.newest = Arc::new(suspended);
                LaneEvent::Suspended(Suspended::Now(Arc::clone(&self.newest)))
            }
            1 => LaneEvent::SuspendFailed,
            _ => LaneEvent::Suspended(Suspended::NotNeeded),
        };
        self.happens(event);
    }

    /// Where a lane has ended the next one begins, from what is stored; the client's operator has resumed it.
    fn begin_anew(&mut self) {
        if !self.machine.is_over() {
            return;
        }
        assert!(self.requests.is_empty() && self.storing.is_none() && !self.noting);
        assert!(self.loading.is_none() && self.asks.is_none() && self.permits == 0);
        assert_eq!(self.held.get(), 0, "a lane that ended holds documents");
        if self.newest.status == SubscriptionStatus::Suspended {
            let generation = self.newest.generation.get() + 1;
            self.newest = subscription(&self.limits, self.newest.spec.mode(), generation);
        }
        self.epoch = Epoch::new(self.epoch.get() + 1);
        (self.stop, self.crowded, self.stored_at) = (false, false, None);
        self.machine = machine(self.epoch, self.now, &self.newest, &self.state);
        self.halved.clear();
        self.made.clear();
        self.happens(LaneEvent::Begun);
    }

    /// Time passes, from one time it wants to be woken at to the next.
    fn pass(&mut self, millis: u64) {
        let end = self.now + millis as i64;
        while let Some(wakes) = self.machine.wakes_at().filter(|wakes| *wakes <= at(end)) {
            // A millisecond is as fine as time is here.
            self.now = ((wakes - at(0)).as_nanos() as i64).div_ceil_(1_000_000);
            if self.now > end {
                break;
            }
            self.happens(LaneEvent::Rung);
        }
        self.now = end;
    }

    fn change(&mut self, number: u32, gone: bool, handed: bool) {
        self.revision += 1;
        let revision = Revision::new(self.revision);
        let version = if gone { Version::gone(revision) } else { Version::live(revision) };
        let mut document = Document::new(key(number), version, at(self.now));
        if !gone {
            document.content = Some(Content::from_stored("{}".into()));
        }
        assert!(size(&document) <= 2);
        self.documents.insert(number, document);
        let spread = Spread::new(lane().subscription, self.newest.generation, key(number), version);
        match self.rows.get_mut(&number) {
            Some(row) => row.spread(&spread, at(self.now)),
            None => drop(self.rows.insert(number, Row::new(&spread, at(self.now)))),
        }
        if handed && self.machine.takes_handed() {
            let (row, document) = (self.rows[&number].clone(), self.documents[&number].clone());
            let (read_at, counted) = (at(self.now), Counted::new(&self.held));
            self.happens(LaneEvent::Handed(vec![HandedRow { row, document, read_at, counted }]));
        } else {
            self.happens(LaneEvent::Woken);
        }
    }

    fn load(&mut self, well: bool) {
        let Some((window, busy, under)) = self.loading.take() else { return };
        self.crowded &= !well;
        if !well {
            return self.happens(LaneEvent::LoadFailed);
        }
        let passive = under.spec.mode() == Mode::Passive;
        let looked_for = |row: &&Row| row.is_pending() && (row.demanded || !passive);
        let mut pending: Vec<&Row> = self.rows.values().filter(looked_for).collect();
        pending.sort_by_key(|row| (row.due, row.key.url.clone()));
        let wanted = busy.len() + window;
        let more = pending.len() >= wanted;
        let mut loaded = Loaded {
            due: Vec::new(),
            mode: under.spec.mode(),
            filter: under.spec.filter().cloned(),
            next_due: None,
            more,
            passed_over: Vec::new(),
            behind: false,
            reread: None,
        };
        let mut no_room = false;
        for row in pending.into_iter().take(wanted) {
            if row.due > at(self.now) {
                loaded.next_due.get_or_insert(row.due);
                loaded.more = false;
            } else if busy.contains_key(&row.key.url) {
                loaded.passed_over.push((row.key.url.clone(), row.wanted));
            } else if loaded.due.len() < window {
                let document = self.documents[&self.number(&row.key.url)].clone();
                let verdict = verdict(self.limits.filtered, &document);
                loaded.due.push((row.clone(), document, verdict, Counted::new(&self.held)));
            } else {
                no_room = true;
            }
        }
        // What was busy when it was asked for may be stored by now: then more are due than were wanted.
        loaded.more |= no_room;
        self.happens(LaneEvent::Loaded(loaded));
    }

    fn store(&mut self, well: bool) {
        let Some(batch) = self.storing.take() else { return };
        let mut flushed = Flushed::default();
        if !well {
            flushed.left = batch;
            flushed.error =
                Some(crate::error::Error::new(crate::error::ErrorKind::Timeout, "test"));
            return self.happens(LaneEvent::Stored(flushed));
        }
        for unstored in batch {
            let number = self.number(&unstored.update.key.url);
            let row = self.rows.get_mut(&number).unwrap();
            let effect = unstored.update.effect;
            let applied = row.apply(self.epoch, unstored.update.round, effect.clone());
            if let RowEffect::Retry { due, .. } = effect {
                flushed.next_due = Some(flushed.next_due.map_or(due, |next| next.min(due)));
            }
            let settled = match effect {
                RowEffect::Settle { version, .. } if applied == Applied::Done => Some(version),
                _ => None,
            };
            flushed.done.push((unstored.update.key.url, settled));
        }
        self.happens(LaneEvent::Stored(flushed));
    }

    fn answer(&mut self, which: usize, how: u8) {
        let Some(number) = self.requests.keys().nth(which).copied() else { return };
        let told = self.requests.remove(&number).unwrap();
        let poisoned = told.iter().any(|it| Some(it.of) == self.limits.poison);
        let how = if poisoned && how <= 11 { 14 } else { how };
        let batched = self.limits.batch.is_some();
        let outcome = match how {
            // A client may take some of many, refuse some for good, and name what it was never told.
            9 if batched => {
                let (failed, discarded) = (&told[0].id, &told[told.len() - 1].id);
                let body = format!(r#"{{"failed":["{failed}","x"],"discarded":["{discarded}"]}}"#);
                told.iter().skip(1).for_each(|it| self.took(it));
                saying(body)
            }
            10 if batched => saying("{\"failed\":7}".to_owned()),
            // It was told, and what it said of it is unknown.
            11 if batched => {
                let mut cut = saying("{\"fai".to_owned());
                cut.whole = false;
                cut
            }
            0..=11 => {
                told.iter().for_each(|it| self.took(it));
                DeliveryOutcome::answered(200)
            }
            12 | 13 => DeliveryOutcome::answered(500),
            14 => DeliveryOutcome::answered(404),
            16 => DeliveryOutcome::answered(410),
            15 => held(Duration::from_secs(2)),
            _ => DeliveryOutcome::failed(FailureKind::Connect, "refused", false),
        };
        let undivided = told.len() > 1 && !(0..=9).contains(&how);
        for Told { of, .. } in told {
            if undivided {
                self.spared.insert(of);
                self.halved.insert(of);
            } else {
                self.halved.remove(&of);
            }
        }
        let dead_letter = crate::model::DeadLetterId::from_bytes([3; 16]);
        let dead_letters = DeadLetterIds { first: dead_letter, others: Vec::new() };
        self.happens(LaneEvent::Sent(vec![Sent { number, outcome, random: 0.5, dead_letters }]));
    }

    fn took(&mut self, told: &Told) {
        self.told.insert(told.of, told.version);
        self.took_at.insert(told.of, at(self.now));
    }

    /// A slot whose trust has ended is lost; one that is trusted again is granted anew, which wakes.
    fn trust(&mut self, trusted: bool) {
        if trusted && !std::mem::replace(&mut self.trusted, trusted) {
            self.happens(LaneEvent::Woken);
        }
        self.trusted = trusted;
    }

    /// Everything the lane waits for is answered, well, until it waits for nothing but time.
    fn calm_down(&mut self) {
        self.trust(true);
        if self.newest.spec.mode() == Mode::Passive {
            self.settings(Mode::Active);
        }
        for _ in 0..4_000 {
            self.begin_anew();
            let (load, store, note) = (self.loading.is_some(), self.storing.is_some(), self.noting);
            match () {
                () if load => self.act(&Act::Load(true)),
                () if store => self.act(&Act::Store(true)),
                () if note => self.act(&Act::Note(true)),
                () if self.asks.is_some() => self.act(&Act::Permits(3)),
                () if self.suspending => self.act(&Act::Suspend(2)),
                () if !self.requests.is_empty() => self.act(&Act::Answer { which: 0, how: 0 }),
                () if self.machine.is_ending() => self.act(&Act::Pass(100)),
                () if self.rows.values().any(Row::is_pending) => self.pass(100),
                () => return,
            }
        }
        panic!("it does not come to rest: {:?}", self.rows);
    }
}

/// A lane as it begins.
fn machine(
    epoch: Epoch,
    now: i64,
    subscription: &Arc<Subscription>,
    state: &LaneState,
) -> Machine<Counted> {
    let figures = Figures {
        lane: lane(),
        takeover: Takeover { epoch, at: at(now) },
        concurrency: 32,
        max_ttl: Duration::from_secs(3_600),
        hold_limit: Duration::from_secs(60),
        suspend_after: Duration::from_secs(120),
        // So seldom that no look of its own makes up for one that was missed.
        rederive_every: Duration::from_secs(86_400),
        node: "node".to_owned(),
    };
    let health = ClientHealth::stored(state.clone(), None);
    Machine::new(figures, Arc::clone(subscription), health, false)
}

trait DivCeil {
    fn div_ceil_(self, by: i64) -> i64;
}

impl DivCeil for i64 {
    fn div_ceil_(self, by: i64) -> i64 {
        (self + by - 1).div_euclid(by)
    }
}

/// A success with something to say about it.
fn saying(body: String) -> DeliveryOutcome {
    let mut outcome = DeliveryOutcome::answered(200);
    if let Reply::Answered { excerpt, .. } = &mut outcome.reply {
        *excerpt = body.into();
    }
    outcome
}

/// An answer that asks to be left alone for a while.
fn held(time: Duration) -> DeliveryOutcome {
    let mut outcome = DeliveryOutcome::answered(503);
    if let Reply::Answered { retry_after, .. } = &mut outcome.reply {
        *retry_after = Some(RetryAfter::Delay(time));
    }
    outcome
}

fn limits() -> impl Strategy<Value = Limits> {
    let batch = (2..6_u32, prop::option::of(1..5_000_u64), any::<bool>());
    let batch = batch.prop_map(|(max, wait, tight)| {
        let batch = BatchOptions::of(max).limit_bytes(if tight { 1_024 } else { 1 << 20 });
        wait.map_or(batch, |wait| batch.wait(Duration::from_millis(wait)))
    });
    (
        1..5_u32,
        prop::option::weighted(0.3, 100..400_u64),
        0..4_u32,
        prop::option::weighted(0.6, batch),
        prop::option::weighted(0.3, 0..DOCUMENTS),
        prop::option::weighted(0.2, 100..4_000_u64),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(concurrency, rate, retries, batch, poison, min_interval, filtered)| {
            Limits { concurrency, rate, retries, batch, poison, min_interval, filtered }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    /// P1 and P2 for one lane, within all its limits: whatever happens in whatever order, what is sent may
    /// be sent, and once all is well again every client has, or was given up at, the newest version.
    #[test]
    fn whatever_happens_it_sends_only_what_it_may_and_all_that_it_must(
        limits in limits(),
        acts in prop::collection::vec(act(), 0..500),
    ) {
        let mut world = World::new(limits);
        for act in &acts {
            world.act(act);
            world.begin_anew();
        }
        world.calm_down();
        for (number, row) in &world.rows {
            let newest = world.documents[number].version;
            prop_assert!(row.settled.max(row.given_up) >= Some(newest), "{row:?}");
        }
        prop_assert_eq!(world.held.get(), 0, "it holds documents of which nothing is left to tell");
    }
}

/// A world whose client takes one document, told about it once.
fn quiet() -> World {
    let mut world = World::new(Limits::plain());
    world.change(0, false, false);
    world.calm_down();
    world
}

#[test]
fn a_client_that_is_told_once_is_left_alone() {
    let mut world = quiet();
    assert_eq!(world.made.len(), 1);
    world.pass(600_000);
    world.calm_down();
    assert_eq!(world.made.len(), 1);
    assert_eq!(world.rows[&0].present, Present::Yes);
}

#[test]
fn what_is_read_and_cannot_be_sent_is_let_go_and_read_again() {
    let mut world = quiet();
    world.change(0, false, false);
    world.act(&Act::Load(true));
    assert_eq!(world.held.get(), 1);
    world.pass(600);
    assert_eq!(world.held.get(), 0, "it has grown old");
    world.calm_down();
    assert_eq!(world.made.len(), 2);
}

#[test]
fn a_hold_is_kept_by_a_lane_that_has_permits() {
    let mut world = quiet();
    world.change(0, false, false);
    world.act(&Act::Load(true));
    world.held_until = at(world.now + 5_000);
    world.act(&Act::Permits(2));
    assert_eq!((world.permits, world.requests.len()), (0, 0), "it gives them back");
    world.calm_down();
    assert!(*world.made.last().unwrap() >= world.held_until);
}

#[test]
fn a_lane_that_is_not_trusted_begins_nothing_and_does_not_turn() {
    let mut world = quiet();
    world.trusted = false;
    world.change(0, false, false);
    assert!(world.loading.is_none());
    let mut turns = 0;
    while let Some(wakes) = world.machine.wakes_at().filter(|wakes| *wakes < at(600_000)) {
        world.now = ((wakes - at(0)).as_nanos() as i64).div_ceil_(1_000_000);
        world.happens(LaneEvent::Rung);
        turns += 1;
    }
    assert!(turns < 20, "{turns} turns in ten minutes");
    world.calm_down();
    assert_eq!(world.made.len(), 2);
}

#[test]
fn a_lane_that_ends_stores_what_it_knows_and_begins_nothing() {
    let mut world = quiet();
    world.change(1, false, false);
    world.act(&Act::Load(true));
    world.act(&Act::Permits(1));
    assert_eq!(world.requests.len(), 1);
    let stop = Moment { stop: true, ..world.moment() };
    let commands = world.machine.on(LaneEvent::Woken, &stop);
    assert!(commands.iter().all(|it| !matches!(it, Command::Load { .. } | Command::Send { .. })));
    commands.into_iter().for_each(|command| world.obey(command));
    assert!(world.machine.is_ending() && !world.machine.is_over());
    world.answer(0, 0);
    for _ in 0..4 {
        world.act(&Act::Store(true));
        world.act(&Act::Note(true));
    }
    assert!(world.machine.is_over());
    assert!(!world.rows[&1].is_pending());
}

#[test]
fn what_is_handed_over_is_told_without_a_read() {
    let mut world = quiet();
    world.change(0, false, true);
    assert!(world.loading.is_none() && world.held.get() == 1);
    world.act(&Act::Permits(1));
    assert_eq!(world.requests.len(), 1);
    world.change(0, false, true);
    assert_eq!(world.held.get(), 0, "it is being told already");
    world.answer(0, 0);
    world.act(&Act::Store(true));
    assert!(world.loading.is_some(), "what came meanwhile is read");
    world.calm_down();
    assert_eq!(world.made.len(), 3);
}

#[test]
fn what_is_handed_over_gets_ahead_of_nothing_and_waits_for_newer_settings() {
    let mut world = quiet();
    world.change(1, false, false);
    assert!(world.loading.is_some() && !world.machine.takes_handed(), "it looks already");
    world.calm_down();
    // Spread under settings that the lane has not heard of.
    let version = Version::live(Revision::new(77));
    let spread = Spread::new(lane().subscription, Generation::new(9), key(2), version);
    let (row, document) = (Row::new(&spread, at(0)), Document::new(key(2), version, at(0)));
    let (read_at, counted) = (at(world.now), Counted::new(&world.held));
    let handed = LaneEvent::Handed(vec![HandedRow { row, document, read_at, counted }]);
    let commands = world.machine.on(handed, &world.moment());
    assert!(
        matches!(commands[..], [Command::Load { .. }]),
        "it may have been paused: {commands:?}"
    );
    assert_eq!(world.held.get(), 0);
}

/// A world whose client wants many in one request, of which so many documents have changed.
fn batched(batch: BatchOptions, changed: u32) -> World {
    let mut world = World::new(Limits::batched(batch));
    (0..changed).for_each(|number| world.change(number, false, false));
    world
}

impl World {
    /// Everything but requests and time is answered, until nothing else is waited for.
    fn go_on(&mut self) {
        for _ in 0..1_000 {
            match () {
                () if self.loading.is_some() => self.act(&Act::Load(true)),
                () if self.storing.is_some() => self.act(&Act::Store(true)),
                () if self.noting => self.act(&Act::Note(true)),
                () if self.asks.is_some() => self.act(&Act::Permits(3)),
                () => return,
            }
        }
        panic!("it turns without end");
    }

    /// What requests under way tell of.
    fn under_way(&self) -> Vec<Vec<u32>> {
        self.requests.values().map(|told| told.iter().map(|it| it.of).collect()).collect()
    }
}

#[test]
fn whatever_is_there_goes_in_one_request() {
    let mut world = batched(BatchOptions::of(4), DOCUMENTS);
    world.go_on();
    assert_eq!(world.under_way(), [vec![0, 1, 2, 3], vec![4, 5]]);
    world.calm_down();
    assert_eq!(world.made.len(), 2);
}

#[test]
fn rows_gather_until_there_are_enough() {
    let mut world = batched(BatchOptions::of(3).wait(Duration::from_secs(1)), 2);
    world.go_on();
    assert!(world.under_way().is_empty(), "two wait for a third");
    world.pass(500);
    world.change(2, false, false);
    world.pass(200);
    world.go_on();
    let mut told = world.under_way();
    told.iter_mut().for_each(|told| told.sort_unstable());
    assert_eq!(told, [[0, 1, 2]]);
}

#[test]
fn one_row_waits_for_others_no_longer_than_it_may() {
    let mut world = batched(BatchOptions::of(3).wait(Duration::from_secs(2)), 1);
    for _ in 0..19 {
        world.go_on();
        assert!(world.under_way().is_empty(), "at {}", world.now);
        world.pass(100);
    }
    world.go_on();
    world.pass(100);
    world.go_on();
    assert_eq!(world.under_way(), [[0]]);
    assert_eq!(world.now, 2_000);
}

#[test]
fn while_rows_gather_they_are_looked_for_now_and_then() {
    let mut world = batched(BatchOptions::of(6).wait(Duration::from_secs(4)), 1);
    world.go_on();
    let mut loads = 0;
    for _ in 0..30 {
        // Something changes all the time.
        world.change(0, false, false);
        loads += u32::from(world.loading.is_some());
        world.go_on();
        world.pass(100);
    }
    assert!((1..=13).contains(&loads), "{loads} loads in three seconds");
    assert!(world.under_way().is_empty());
}

#[test]
fn no_memory_for_more_ends_the_waiting() {
    let mut world = batched(BatchOptions::of(6).wait(Duration::from_secs(2)), 2);
    world.go_on();
    world.change(2, false, false);
    world.pass(300);
    assert!(world.loading.is_some() && world.under_way().is_empty());
    world.act(&Act::NoRoom(true));
    world.act(&Act::Permits(1));
    assert_eq!(world.under_way(), [[0, 1]]);
}

#[test]
fn a_request_is_no_larger_than_it_may_be() {
    let mut world = batched(BatchOptions::of(6).limit_bytes(1_024), DOCUMENTS);
    world.go_on();
    assert_eq!(world.under_way(), [[0, 1, 2], [3, 4, 5]]);
}

#[test]
fn what_is_refused_as_a_whole_is_halved_until_the_bad_one_is_alone() {
    let mut world = World::new(Limits {
        poison: Some(3),
        retries: 0,
        concurrency: 1,
        ..Limits::batched(BatchOptions::of(6))
    });
    (0..DOCUMENTS).for_each(|number| world.change(number, false, false));
    let mut seen = Vec::new();
    loop {
        world.go_on();
        let Some(next) = world.under_way().pop() else { break };
        seen.push(next);
        world.answer(0, 0);
    }
    assert_eq!(
        seen,
        [vec![0, 1, 2, 3, 4, 5], vec![0, 1, 2], vec![3, 4, 5], vec![3], vec![4], vec![5]]
    );
    for (number, row) in &world.rows {
        assert_eq!((row.is_pending(), row.given_up.is_some()), (false, *number == 3), "{number}");
    }
}

#[test]
fn what_failed_alone_holds_nobody_when_it_is_tried_again() {
    let mut world = World::new(Limits { poison: Some(0), ..Limits::batched(BatchOptions::of(3)) });
    world.change(0, false, false);
    world.go_on();
    world.answer(0, 0);
    world.go_on();
    world.pass(5_000);
    (1..3).for_each(|number| world.change(number, false, false));
    world.go_on();
    let mut under_way = world.under_way();
    under_way.sort();
    assert_eq!(under_way, [vec![0], vec![1, 2]]);
}

#[test]
fn a_client_that_is_down_is_probed_by_one() {
    let mut world = batched(BatchOptions::of(6), DOCUMENTS);
    let mut sizes = Vec::new();
    for _ in 0..8 {
        world.go_on();
        sizes.extend(world.under_way().iter().map(Vec::len));
        while !world.requests.is_empty() {
            world.answer(0, 12);
        }
        world.go_on();
        world.pass(1_000);
    }
    assert!(world.machine.record.health().is_probing());
    assert_eq!(sizes[0], 6);
    assert_eq!(sizes.last(), Some(&1));
    world.calm_down();
}

#[test]
fn settings_without_batches_are_followed_at_once() {
    let mut world = batched(BatchOptions::of(3).wait(Duration::from_secs(4)), 2);
    world.go_on();
    assert!(world.under_way().is_empty());
    world.limits = Limits::plain();
    world.act(&Act::Settings(Mode::Active));
    world.go_on();
    assert_eq!(world.under_way(), [[0], [1]]);
}
