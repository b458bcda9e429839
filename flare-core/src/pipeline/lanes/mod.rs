//! Takes slots as they are granted, released and lost, and news of subscriptions; gives each active
//! lane of those slots somebody who works it. Stops before it starts anew; slots do not wait for each other.
//!
//! - `tenancy`: what is worked in one slot, from its grant to its end; `start`: its tasks.
//! - `directory`: the lanes that are worked, for whoever has news for one.
//! - `hear`: what is said in a queue; `leave`: that a subscription has left a slot.
//! - `queues`: that all of them are there.
//! - `agenda`: what is to be read from the stores next; `read`: reads it; `adopt`: acts on it.
//! - `teller`: for news that come by other ways; `near`: for rows that were written in this process.
//!
//! Nothing here is awaited but what comes next: a slow store delays news, and no change of
//! ownership.

mod adopt;
mod agenda;
mod directory;
mod hear;
mod leave;
mod near;
mod queues;
mod read;
mod start;
mod teller;
mod tenancy;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tracing::warn;

use self::agenda::Agenda;
use self::directory::Directory;
pub(crate) use self::near::{LanePlace, NearLanes};
use self::read::{Read, Reader};
pub(crate) use self::teller::Teller;
use self::tenancy::{Grant, Tenancy};
use super::context::Context;
use super::lane::Places;
use super::stage::chain;
use crate::model::{Generation, LaneId, SubscriptionId, Timestamp};
use crate::ownership::{SlotChange, Slots, Term};
use crate::tools::taken;

/// News that wait for the lanes to hear them; a full line makes the slot's queue wait.
const NEWS: usize = 256;
/// How long something that failed is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// The lanes this runtime works.
pub(crate) struct Lanes {
    context: Arc<Context>,
    /// Places among all requests of this runtime.
    places: Places,
    directory: Arc<Directory>,
    /// What is worked, by slot.
    slots: BTreeMap<u32, Tenancy>,
    /// Slots that drain, by when they have to be done.
    drains: BTreeMap<Timestamp, Vec<Slots>>,
    /// Lanes and consumers of all slots, and what each is.
    tasks: JoinSet<()>,
    roles: HashMap<Id, Role>,
    /// Subscriptions that start anew once the last of their lanes has ended.
    awaited: BTreeSet<SubscriptionId>,
    /// Those of which it is being said that they have left a slot, and as of which generation.
    leaving: BTreeMap<SubscriptionId, Generation>,
    agenda: Agenda,
    /// What is being read from the stores.
    reading: Option<BoxFuture<'static, Read>>,
    /// Sees whether all queues are there.
    checking: Option<AbortHandle>,
    news: mpsc::Receiver<SubscriptionId>,
    tell: mpsc::Sender<SubscriptionId>,
}

/// What a task does.
#[derive(Clone, Copy)]
struct Role {
    slot: u32,
    /// Which lane it works; none, if it listens to the slot's queue.
    lane: Option<LaneId>,
}

impl Lanes {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let (tell, news) = mpsc::channel(NEWS);
        let directory = Arc::default();
        context.near.are(&directory);
        Self {
            places: context.places.clone(),
            context,
            directory,
            slots: BTreeMap::new(),
            drains: BTreeMap::new(),
            tasks: JoinSet::new(),
            roles: HashMap::new(),
            awaited: BTreeSet::new(),
            leaving: BTreeMap::new(),
            agenda: Agenda::default(),
            reading: None,
            checking: None,
            news,
            tell,
        }
    }

    /// A way to tell them of news that come by other ways than the queues.
    pub(crate) fn teller(&self) -> Teller {
        Teller { news: self.tell.clone(), directory: Arc::clone(&self.directory) }
    }

    /// Follows the ownership until its stream ends.
    pub(crate) async fn run(mut self, mut ownership: mpsc::Receiver<SlotChange>) {
        let (context, directory) = (Arc::clone(&self.context), Arc::clone(&self.directory));
        loop {
            self.begin_reading();
            let next = self.next_at();
            tokio::select! {
                biased;
                change = ownership.recv() => match change {
                    Some(change) => self.follow(change),
                    None => break,
                },
                () = directory.news_missed() => self.sweep(),
                Some(id) = self.news.recv(), if self.reading.is_none() => self.read_one(id),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                read = taken(&mut self.reading) => self.take(read),
                () = context.store_clock.sleep_until(next) => self.end_overdue(),
            }
        }
        self.tasks.shutdown().await;
        self.context.progress.set_lanes(0);
    }

    /// Reads all subscriptions of all slots, for any of them may have changed.
    fn sweep(&mut self) {
        self.agenda.sweep_at_once(self.slots.keys().copied());
    }

    /// When something is to be done, if nothing comes before.
    fn next_at(&self) -> Timestamp {
        let read = if self.reading.is_none() { self.agenda.next_at() } else { None };
        let drained = self.drains.keys().next().copied();
        [read, drained].into_iter().flatten().min().unwrap_or(Timestamp::MAX)
    }

    fn follow(&mut self, change: SlotChange) {
        match change {
            SlotChange::Granted { slots, term } => self.take_over(&slots, term),
            SlotChange::Releasing { slots, until, done } => self.drain(&slots, until, done),
            SlotChange::Lost { slots } => self.end(&slots, None),
        }
        self.count();
    }

    fn take_over(&mut self, slots: &Slots, term: Term) {
        let grant = Grant::new(&self.context, term);
        let held = |slot: &u32| self.slots.get(slot).is_some_and(|held| !held.knows(&grant));
        // What is held ends before anything starts there anew.
        let held: Slots = slots.iter().filter(held).collect();
        self.end(&held, Some(&grant));
        for slot in slots.iter() {
            if !self.slots.contains_key(&slot) {
                self.begin(slot, grant.clone());
            }
        }
    }

    fn begin(&mut self, slot: u32, grant: Grant) {
        self.slots.insert(slot, Tenancy::begin(grant));
        // A reserved one has a queue once somebody has it.
        if slot < self.context.slots {
            self.listen(slot, Duration::ZERO);
        }
        self.agenda.sweep_at_once([slot]);
    }

    /// Has slots take no more work and finish what is in flight, within the limit. The others go on.
    fn drain(&mut self, slots: &Slots, until: Duration, done: oneshot::Sender<()>) {
        let left = until.saturating_sub(self.context.clock.monotonic());
        let until = self.context.now() + left.min(self.context.drain_limit.get());
        let done = Arc::new(done);
        for slot in slots.iter() {
            if let Some(tenancy) = self.slots.get_mut(&slot) {
                tenancy.drain(until, &done);
            }
        }
        self.directory.stop_all(slots);
        self.drains.entry(until).or_default().push(slots.clone());
        slots.iter().for_each(|slot| self.vacate(slot));
    }

    /// Ends what did not drain in time.
    fn end_overdue(&mut self) {
        let now = self.context.now();
        while let Some(entry) = self.drains.first_entry().filter(|entry| *entry.key() <= now) {
            for slots in entry.remove() {
                let overdue =
                    |slot: &u32| self.slots.get(slot).is_some_and(|it| it.is_overdue(now));
                let overdue: Slots = slots.iter().filter(overdue).collect();
                if overdue.iter().next().is_some() {
                    warn!(
                        "requests still in flight are dropped; they are made again at the next start"
                    );
                    self.end(&overdue, None);
                }
            }
        }
        self.count();
    }

    /// Ends slots at once: requests in flight are dropped, their outcome unknown. What is granted
    /// anew begins when nothing is left of them.
    fn end(&mut self, slots: &Slots, next: Option<&Grant>) {
        self.directory.forget(slots);
        for slot in slots.iter() {
            if let Some(tenancy) = self.slots.get_mut(&slot) {
                tenancy.end(next.cloned());
                self.vacate(slot);
            }
        }
    }

    /// Gives a slot up of which nothing is left, or begins what it was granted for meanwhile.
    fn vacate(&mut self, slot: u32) {
        if !self.slots.get(&slot).is_some_and(Tenancy::is_over) {
            return;
        }
        if let Some(next) = self.slots.remove(&slot).and_then(Tenancy::into_next) {
            self.begin(slot, next);
        } else if self.slots.is_empty() {
            self.agenda.clear();
        }
    }

    /// Says how many lanes are worked.
    fn count(&self) {
        self.context.progress.set_lanes(self.directory.len());
        self.directory.set_slots(self.slots.len());
    }

    /// A lane ended by a wish that may have changed meanwhile, or something failed: looked at
    /// again, but not at once, for what ends as soon as it starts must not make us spin. Where the
    /// end was only the way to another beginning, nothing is waited for.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let Some(Role { slot, lane }) = self.roles.remove(&id) else { return };
        let failed = ended.as_ref().is_err_and(JoinError::is_panic);
        if let Err(error) = &ended
            && failed
        {
            warn!(%error, slot, "a lane, or what wakes it, failed; it starts again");
        }
        let worked = lane.and_then(|lane| self.directory.remove(lane, id));
        let last = |it: &LaneId| !self.directory.works(it.subscription);
        let awaited = lane.filter(last).is_some_and(|it| self.awaited.remove(&it.subscription));
        self.count();
        let Some(tenancy) = self.slots.get_mut(&slot) else { return };
        tenancy.ended(id);
        if !tenancy.works() {
            self.vacate(slot);
        } else if let Some(LaneId { subscription, .. }) = lane {
            if let Some(worked) = worked {
                self.directory.remember(subscription, &worked, failed);
            }
            if awaited {
                self.agenda.at_once(subscription);
            } else {
                self.later(subscription);
            }
        } else {
            self.listen(slot, AGAIN);
        }
    }

    /// Reads what is next, unless something is being read.
    fn begin_reading(&mut self) {
        if self.reading.is_some() {
            return;
        }
        let now = self.context.now();
        let held = || self.slots.keys().copied().collect();
        if let Some((slots, after)) = self.agenda.page(now, false, held) {
            self.read_page(slots, after);
        } else if let Some(id) = self.news.try_recv().ok().or_else(|| self.agenda.due(now)) {
            self.read_one(id);
        } else if let Some((slots, after)) = self.agenda.page(now, true, held) {
            self.read_page(slots, after);
        }
    }

    fn reader(&self) -> Reader {
        Reader { context: Arc::clone(&self.context), directory: Arc::clone(&self.directory) }
    }

    fn read_page(&mut self, slots: Slots, after: Option<SubscriptionId>) {
        // What was given up since need not be read.
        let slots = slots.iter().filter(|slot| self.slots.contains_key(slot)).collect();
        self.reading = Some(self.reader().page(slots, after).boxed());
    }

    fn read_one(&mut self, id: SubscriptionId) {
        // News of lanes that are not ours are not for us. Whoever has a reserved slot has to look.
        let reserved = self.slots.range(self.context.slots..).next().is_some();
        if reserved || self.slots.contains_key(&self.context.slot(id, None)) {
            self.reading = Some(self.reader().one(id).boxed());
        }
    }

    fn take(&mut self, read: Read) {
        self.reading = None;
        match read {
            Read::One(looked) => self.adopt(looked),
            Read::Page { looked, after, stopped } => {
                looked.into_iter().for_each(|looked| self.adopt(looked));
                let now = self.context.now();
                match stopped {
                    None => {
                        let pause = self.context.jittered(self.context.settings.sweep_every);
                        self.agenda.page_read(after, now + pause);
                        if after.is_none() {
                            self.check_queues();
                        }
                    }
                    Some(error) => {
                        warn!(error = %chain(&error), "could not read the subscriptions, will retry");
                        self.agenda.page_failed(after, now + AGAIN);
                    }
                }
            }
        }
    }
}
