//! Takes a name; gives what is known about it, or has it looked up: by one for all that want it, so
//! many at a time, each for a bounded time.
//!
//! A name server may be silent about any number of names, and a look-up that waits for it holds
//! sockets. So a look-up starts with a permit for names of its history: those that resolved the last
//! time, and new ones. After a short time it moves to one of the few permits for slow ones, or, if all
//! are taken and others wait for its permit, starts again with a slow one when it is its turn. A name
//! that took long for nothing starts with a slow permit from then on. Whatever servers are silent
//! about, a name that has resolved before finds a permit at once, a new one within a short time of
//! hundreds of others, and one that is remembered needs none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::{Either, select};
use tokio::sync::watch;

use super::ask::{Ask, FoundName, Unresolved};
use super::memory::{Known, NameHistory, NameMemory};
use super::permits::{LookupPermit, LookupPermits};
use crate::model::duration::format_duration;
use crate::port::Clock;
use crate::tools::lock;

/// Look-ups of names that resolved the last time. Each needs a socket per family of addresses.
const PROVEN: usize = 32;
/// Look-ups of names that nothing is known about.
const NEW: usize = 96;
/// Look-ups that are slow. They ask again and again, and hold a few more sockets each.
const SLOW: usize = 16;
/// How long a look-up may keep others from a permit for those that are prompt: longer than most name
/// servers need, and less than it takes until a question is sent again, on another socket.
const BRISK: Duration = Duration::from_millis(300);
/// Names that are remembered.
const REMEMBERED: usize = 8_192;

/// What looks names up.
pub(super) struct Lookups {
    ask: Arc<dyn Ask>,
    clock: Arc<dyn Clock>,
    /// How long a server may take.
    patience: Duration,
    proven: LookupPermits,
    new: LookupPermits,
    slow: LookupPermits,
    state: Mutex<LookupState>,
}

struct LookupState {
    memory: NameMemory,
    /// The names that are being looked up, and where those who want them are told.
    running: HashMap<String, LookupWatch>,
}

type LookupWatch = watch::Sender<Option<Known>>;
type Answer = Result<FoundName, Unresolved>;

impl Lookups {
    pub(super) fn new(ask: Arc<dyn Ask>, clock: Arc<dyn Clock>, patience: Duration) -> Arc<Self> {
        let state = LookupState { memory: NameMemory::new(REMEMBERED), running: HashMap::new() };
        let [proven, new, slow] = [PROVEN, NEW, SLOW].map(LookupPermits::new);
        Arc::new(Self { ask, clock, patience, proven, new, slow, state: Mutex::new(state) })
    }

    /// The addresses of a name, or why there are none. Dropped while it waits, it leaves the
    /// look-up to those who want it still.
    pub(super) async fn find(self: &Arc<Self>, host: &str) -> Known {
        let mut told = match self.join(host) {
            JoinedLookup::Known(known) => return known,
            JoinedLookup::Waiting(told) => told,
        };
        // A little more than a look-up takes that is asked at once.
        let limit = self.patience + self.patience / 8;
        match self.within(limit, told.wait_for(Option::is_some)).await {
            Some(Ok(known)) => known.clone().unwrap_or_else(|| Err(ENDED.to_owned())),
            Some(Err(_)) => Err(ENDED.to_owned()),
            None => Err(format!(
                "it was not looked up within {}: too many names are, that no name server answers for",
                format_duration(limit)
            )),
        }
    }

    /// Finds out what is known, or waits for the look-up of a name, which is started unless it runs.
    fn join(self: &Arc<Self>, host: &str) -> JoinedLookup {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        if let Some(known) = state.memory.known(host, now) {
            return JoinedLookup::Known(known.clone());
        }
        if let Some(telling) = state.running.get(host) {
            return JoinedLookup::Waiting(telling.subscribe());
        }
        let (telling, told) = watch::channel(None);
        state.running.insert(host.to_owned(), telling.clone());
        let history = state.memory.history(host, now);
        drop(state);
        let running = RunningLookup { lookups: Arc::clone(self), host: host.to_owned(), telling };
        tokio::spawn(running.run(history));
        JoinedLookup::Waiting(told)
    }

    /// What comes of `work`, unless it takes longer.
    async fn within<F: Future>(&self, time: Duration, work: F) -> Option<F::Output> {
        let work = std::pin::pin!(work);
        match select(work, self.clock.sleep(time)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(((), _)) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, LookupState> {
        lock(&self.state)
    }
}

/// What is told if a look-up ends without a result: the runtime that it ran on is shut down.
const ENDED: &str = "its look-up was broken off";

enum JoinedLookup {
    Known(Known),
    Waiting(watch::Receiver<Option<Known>>),
}

/// The look-up of one name.
struct RunningLookup {
    lookups: Arc<Lookups>,
    host: String,
    telling: LookupWatch,
}

impl RunningLookup {
    async fn run(self, history: NameHistory) {
        let Lookups { clock, proven, new, .. } = &*self.lookups;
        let started = clock.monotonic();
        let asked = match history {
            NameHistory::Proven => self.promptly(proven).await,
            NameHistory::New => self.promptly(new).await,
            NameHistory::Slow => self.slowly().await,
        };
        let now = clock.monotonic();
        let took_long = history == NameHistory::Slow || now.saturating_sub(started) > BRISK;
        let mut state = self.lookups.lock();
        match asked {
            Some(answer) => {
                state.memory.learn(&self.host, answer, took_long, now);
                let known = state.memory.known(&self.host, now).cloned();
                state.running.remove(&self.host);
                drop(state);
                self.telling.send_replace(known);
            }
            // No request wants it any more, and it is out of the list already.
            None if took_long => state.memory.learn_slow(&self.host, now),
            None => {}
        }
    }

    /// Asks with one of these permits for as long as no other look-up needs it; `None` if no caller wants the
    /// name any more before it is asked for.
    async fn promptly(&self, permits: &LookupPermits) -> Option<Answer> {
        let Lookups { ask, clock, patience, slow, .. } = &*self.lookups;
        let permit = self.turn(permits).await?;
        let started = clock.monotonic();
        let mut asking = ask.ask(&self.host);
        loop {
            if let Some(answer) = self.lookups.within(BRISK, &mut asking).await {
                return Some(answer);
            }
            let left = patience.saturating_sub(clock.monotonic().saturating_sub(started));
            if left.is_zero() {
                return Some(self.silence());
            }
            if let Some(_slow) = slow.try_take() {
                drop(permit);
                let answer = self.lookups.within(left, asking).await;
                return Some(answer.unwrap_or_else(|| self.silence()));
            }
            if permit.is_wanted() {
                drop((asking, permit));
                return self.slowly().await;
            }
        }
    }

    /// Asks with a slow permit.
    async fn slowly(&self) -> Option<Answer> {
        let Lookups { ask, patience, slow, .. } = &*self.lookups;
        let _place = self.turn(slow).await?;
        let answer = self.lookups.within(*patience, ask.ask(&self.host)).await;
        Some(answer.unwrap_or_else(|| self.silence()))
    }

    /// A permit, unless everybody who wants the name has gone before there is one.
    async fn turn(&self, permits: &LookupPermits) -> Option<LookupPermit> {
        let (permit, left) = (std::pin::pin!(permits.take()), std::pin::pin!(self.left_alone()));
        match select(permit, left).await {
            Either::Left((permit, _)) => Some(permit),
            Either::Right(((), _)) => None,
        }
    }

    /// Waits until no request wants the name; from then on none can join.
    async fn left_alone(&self) {
        loop {
            self.telling.closed().await;
            let mut state = self.lookups.lock();
            if self.telling.receiver_count() == 0 {
                state.running.remove(&self.host);
                return;
            }
        }
    }

    fn silence(&self) -> Answer {
        let patience = format_duration(self.lookups.patience);
        Err(Unresolved::now(format!("no name server answered within {patience}")))
    }
}

impl Drop for RunningLookup {
    /// A look-up that ends in whatever way does not stand in the way of the next.
    fn drop(&mut self) {
        let mut state = self.lookups.lock();
        let mine = |telling: &LookupWatch| telling.same_channel(&self.telling);
        if state.running.get(&self.host).is_some_and(mine) {
            state.running.remove(&self.host);
        }
    }
}

#[cfg(test)]
#[path = "lookups_tests.rs"]
mod tests;
