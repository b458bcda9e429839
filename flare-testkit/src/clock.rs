//! Takes orders from a test; gives time that moves only when told to. Never reads a real clock.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::Timestamp;
use flare_core::port::Clock;

/// How often `advance` lets other work run after each deadline it reaches, so that what was woken
/// can do something and sleep again.
const TURNS: usize = 16;

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
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    next_sleeper: u64,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        let inner = Inner {
            wall: start,
            monotonic: Duration::ZERO,
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Moves both clocks on by `time`, stopping at every deadline on the way, in their order, to
    /// wake whoever waits for it. Dropped half-way, the time stays where it got to.
    ///
    /// Work in the same task (`tokio::join!`) or on the same single-threaded runtime gets turns
    /// at every stop; work on other threads runs whenever it does.
    pub async fn advance(&self, time: Duration) {
        let end = self.lock().monotonic + time;
        // First of all, let those go to sleep who are about to.
        turns().await;
        while self.step(end) {
            turns().await;
        }
    }

    /// Moves on to the next deadline, and wakes those who wait for it, or to `end`; tells whether
    /// there may be more to do.
    fn step(&self, end: Duration) -> bool {
        let mut inner = self.lock();
        let left = end.saturating_sub(inner.monotonic);
        let target = inner.wall + left;
        match inner.sleepers.first_key_value().map(|(&(deadline, _), _)| deadline) {
            Some(deadline) if deadline <= target => {
                let by = deadline - inner.wall;
                inner.wall = inner.wall + by;
                inner.monotonic += by;
                wake(inner);
                true
            }
            _ => {
                inner.wall = target;
                inner.monotonic += left;
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
        inner.wall = inner.wall + by;
        inner.monotonic += by;
        wake(inner);
    }

    /// Sets the wall clock, forwards or backwards. The monotonic one does not move.
    pub fn set_wall(&self, now: Timestamp) {
        let mut inner = self.lock();
        inner.wall = now;
        wake(inner);
    }

    /// The earliest time anybody sleeps until, so that a simulation can move straight to it.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.lock().sleepers.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    /// How many are asleep.
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes everybody whose deadline has come, earliest first, without holding the lock.
fn wake(mut inner: MutexGuard<'_, Inner>) {
    let now = inner.wall;
    let later = inner.sleepers.split_off(&(now, u64::MAX));
    let due = std::mem::replace(&mut inner.sleepers, later);
    drop(inner);
    due.into_values().for_each(Waker::wake);
}

async fn turns() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().wall
    }

    fn monotonic(&self) -> Duration {
        self.lock().monotonic
    }

    async fn sleep_until(&self, deadline: Timestamp) {
        Sleep { clock: self.clone(), deadline, id: None }.await;
    }
}

struct Sleep {
    clock: ManualClock,
    deadline: Timestamp,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut inner = clock.lock();
        if inner.wall >= self.deadline {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            inner.next_sleeper += 1;
            inner.next_sleeper
        });
        inner.sleepers.insert((self.deadline, id), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.lock().sleepers.remove(&(self.deadline, id));
        }
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("ManualClock")
            .field("now", &inner.wall)
            .field("sleepers", &inner.sleepers.len())
            .finish_non_exhaustive()
    }
}
