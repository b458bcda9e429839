//! Takes orders from a test; gives time that moves only when told to. Never reads a real clock.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::Timestamp;
use flare_core::port::Clock;

/// How often `advance` lets other work run after each deadline it reaches, unless said otherwise, so
/// that what was woken can do something and sleep again.
const TURNS: u32 = 16;

/// A clock that stands still until it is moved. Clones share the same time.
///
/// ```
/// use std::time::Duration;
/// use flare_core::model::Timestamp;
/// use flare_core::port::Clock;
/// use flare_testkit::ManualClock;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let clock = ManualClock::new(Timestamp::EPOCH);
/// let deadline = Timestamp::EPOCH + Duration::from_secs(60);
/// tokio::join!(clock.sleep_until(deadline), clock.advance(Duration::from_secs(90)));
/// assert_eq!(clock.now(), Timestamp::EPOCH + Duration::from_secs(90));
/// # });
/// ```
#[derive(Clone)]
pub struct ManualClock {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    wall: Timestamp,
    monotonic: Duration,
    /// Who waits for the wall clock, and who for the monotonic one.
    by_wall: BTreeMap<(Timestamp, u64), Waker>,
    by_monotonic: BTreeMap<(Duration, u64), Waker>,
    next_sleeper: u64,
    turns: u32,
    asked: Asked,
}

/// How often the clock was asked for the time.
#[derive(Default)]
struct Asked {
    ever: u64,
    /// The second of the monotonic clock it counts now, and how often in it.
    second: u64,
    within: u64,
    /// How often it may be in one.
    limit: Option<u64>,
}

impl Asked {
    /// Counts a question; tells whether there were too many of them. Then it says so for ever.
    fn count(&mut self, monotonic: Duration) -> bool {
        self.ever += 1;
        if self.is_overrun() {
            return true;
        }
        if self.second != monotonic.as_secs() {
            (self.second, self.within) = (monotonic.as_secs(), 0);
        }
        self.within += 1;
        self.is_overrun()
    }

    fn is_overrun(&self) -> bool {
        self.limit.is_some_and(|limit| self.within > limit)
    }
}

impl Inner {
    /// How long it is until the next deadline, whichever clock it is on.
    fn next(&self) -> Option<Duration> {
        let wall = self.by_wall.keys().next().map(|(deadline, _)| *deadline - self.wall);
        let monotonic = self.by_monotonic.keys().next();
        let monotonic = monotonic.map(|(deadline, _)| deadline.saturating_sub(self.monotonic));
        wall.into_iter().chain(monotonic).min()
    }

    fn move_on(&mut self, by: Duration) {
        self.wall = self.wall + by;
        self.monotonic += by;
    }
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        let inner = Inner {
            wall: start,
            monotonic: Duration::ZERO,
            by_wall: BTreeMap::new(),
            by_monotonic: BTreeMap::new(),
            next_sleeper: 0,
            turns: TURNS,
            asked: Asked::default(),
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// The same clock, which may be asked for the time so often within one second that it shows. Who
    /// asks more often panics, and from then on so does everybody, whoever runs the simulation
    /// included: somebody who turns without waiting is a failure then, and not a run that never ends.
    #[must_use]
    pub fn limited(self, per_second: u64) -> Self {
        self.lock().asked.limit = Some(per_second);
        self
    }

    /// Lets other work run so often after each deadline that [`advance`](Self::advance) reaches: more
    /// often than the longest chain of wake-ups, where it matters that all of it happens at that time.
    pub fn give_turns(&self, turns: u32) {
        self.lock().turns = turns;
    }

    /// How often it was asked for the time, by anybody. While it stands still and nobody has anything
    /// to do, this stands still too.
    pub fn asked(&self) -> u64 {
        self.lock().asked.ever
    }

    /// What a question finds.
    fn ask(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        let monotonic = inner.monotonic;
        if inner.asked.count(monotonic) && !std::thread::panicking() {
            let (limit, wall) = (inner.asked.limit.unwrap_or_default(), inner.wall);
            drop(inner);
            panic!("at {wall} the time was asked for more than {limit} times within a second");
        }
        inner
    }

    /// Moves both clocks on by `time`, stopping at every deadline on the way, in their order, to
    /// wake whoever waits for it. Dropped half-way, the time stays where it got to.
    ///
    /// Work in the same task (`tokio::join!`) or on the same single-threaded runtime gets turns
    /// at every stop; work on other threads runs whenever it does.
    pub async fn advance(&self, time: Duration) {
        let end = self.lock().monotonic + time;
        // First of all, let those go to sleep who are about to.
        self.turns().await;
        while self.step(end) {
            self.turns().await;
        }
    }

    async fn turns(&self) {
        let turns = self.lock().turns;
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    /// Moves on to the next deadline, and wakes those who wait for it, or to `end`; tells whether
    /// there may be more to do.
    fn step(&self, end: Duration) -> bool {
        let mut inner = self.lock();
        let left = end.saturating_sub(inner.monotonic);
        match inner.next() {
            Some(next) if next <= left => {
                inner.move_on(next);
                wake(inner);
                true
            }
            _ => {
                inner.move_on(left);
                // One more round, if anybody could have moved: those woken last may sleep again.
                !left.is_zero()
            }
        }
    }

    /// Moves both clocks on to `time` at once and wakes everybody whose deadline has come; a
    /// simulation that gives turns itself moves from one [`next_deadline`](Self::next_deadline) to
    /// the next. Never moves backwards.
    pub fn advance_to(&self, time: Timestamp) {
        let mut inner = self.lock();
        let by = time - inner.wall;
        inner.move_on(by);
        wake(inner);
    }

    /// Moves both clocks on by `time` at once and wakes nobody, as when the machine was suspended: the
    /// system's timers stood still. Whoever is asleep wakes when time next passes.
    pub fn suspend(&self, time: Duration) {
        self.lock().move_on(time);
    }

    /// Sets the wall clock, forwards or backwards. The monotonic one does not move.
    pub fn set_wall(&self, now: Timestamp) {
        let mut inner = self.lock();
        inner.wall = now;
        wake(inner);
    }

    /// The earliest time anybody sleeps until, so that a simulation can move straight to it. Who
    /// waits for the monotonic clock does so until the wall clock shows this, unless it is set.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let inner = self.lock();
        inner.next().map(|next| inner.wall + next)
    }

    /// How many are asleep.
    pub fn sleepers(&self) -> usize {
        let inner = self.lock();
        inner.by_wall.len() + inner.by_monotonic.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes everybody whose deadline has come, earliest first, without holding the lock.
fn wake(mut inner: MutexGuard<'_, Inner>) {
    let (wall, monotonic) = (inner.wall, inner.monotonic);
    let later = inner.by_wall.split_off(&(wall, u64::MAX));
    let by_wall = std::mem::replace(&mut inner.by_wall, later);
    let later = inner.by_monotonic.split_off(&(monotonic, u64::MAX));
    let by_monotonic = std::mem::replace(&mut inner.by_monotonic, later);
    drop(inner);
    let by_wall = by_wall.into_iter().map(|((at, id), waker)| (wall - at, id, waker));
    let by_monotonic =
        by_monotonic.into_iter().map(|((at, id), waker)| (monotonic.saturating_sub(at), id, waker));
    let mut due: Vec<(Duration, u64, Waker)> = by_wall.chain(by_monotonic).collect();
    due.sort_by_key(|(late, id, _)| (Reverse(*late), *id));
    due.into_iter().for_each(|(_, _, waker)| waker.wake());
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.ask().wall
    }

    fn monotonic(&self) -> Duration {
        self.ask().monotonic
    }

    async fn sleep_until(&self, deadline: Timestamp) {
        Sleep { clock: self.clone(), deadline: Deadline::Wall(deadline), id: None }.await;
    }

    async fn sleep(&self, time: Duration) {
        let deadline = Deadline::Monotonic(self.monotonic().saturating_add(time));
        Sleep { clock: self.clone(), deadline, id: None }.await;
    }
}

/// What somebody waits for.
#[derive(Clone, Copy)]
enum Deadline {
    Wall(Timestamp),
    Monotonic(Duration),
}

struct Sleep {
    clock: ManualClock,
    deadline: Deadline,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut inner = clock.ask();
        let over = match self.deadline {
            Deadline::Wall(deadline) => inner.wall >= deadline,
            Deadline::Monotonic(deadline) => inner.monotonic >= deadline,
        };
        if over {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            inner.next_sleeper += 1;
            inner.next_sleeper
        });
        let waker = context.waker().clone();
        match self.deadline {
            Deadline::Wall(deadline) => drop(inner.by_wall.insert((deadline, id), waker)),
            Deadline::Monotonic(deadline) => drop(inner.by_monotonic.insert((deadline, id), waker)),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let mut inner = self.clock.lock();
        match self.deadline {
            Deadline::Wall(deadline) => drop(inner.by_wall.remove(&(deadline, id))),
            Deadline::Monotonic(deadline) => drop(inner.by_monotonic.remove(&(deadline, id))),
        }
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("ManualClock")
            .field("now", &inner.wall)
            .field("sleepers", &(inner.by_wall.len() + inner.by_monotonic.len()))
            .finish_non_exhaustive()
    }
}
