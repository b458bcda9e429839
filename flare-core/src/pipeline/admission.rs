//! Takes how long puts took and how many were under way beside them; gives how many may be: as many
//! as the store answers within the time a put may wait. Decides without clock or await.
//!
//! By Little's law puts that arrive as fast as they are answered wait for (puts under way) × (time
//! between two answers). That time is measured, so the limit follows the store: it falls when the
//! store is far, slow or busy, and rises when it is quick again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What a store is taken to work on side by side, and so what it is always given: fewer under way
/// tell nothing of what it can do.
const FEWEST: usize = 16;
/// What a store is taken for before anything is known of it: 80 puts a second.
const PACE_AT_FIRST: u64 = 12_500_000;
/// How many puts it takes for the store to be judged anew: one slow put among many changes little.
const MEMORY: u64 = 64;

/// Counts puts under way, and knows how many there may be. Nothing waits here, so nothing can pile
/// up; two numbers that every put changes, and no lock.
#[derive(Debug)]
pub(crate) struct Admission {
    /// How long a put may wait for those before it.
    wait: Duration,
    /// Most puts under way, however quick the store is.
    most: usize,
    under_way: AtomicUsize,
    /// Nanoseconds from one answer of the store to the next.
    pace: AtomicU64,
}

/// A put that was admitted; given back when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionTurn {
    /// How many were under way with it when it began.
    number: usize,
}

/// How a put ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutEnded {
    /// The store did all it was asked to.
    Stored,
    /// The store failed, or the caller waited for its answer no longer. That it was quick says nothing,
    /// that it was slow does.
    Failed,
    /// The store was not asked to write.
    Refused,
}

impl Admission {
    pub(crate) fn new(most: usize, wait: Duration) -> Self {
        let pace = AtomicU64::new(PACE_AT_FIRST);
        Self { wait, most, under_way: AtomicUsize::new(0), pace }
    }

    /// A turn for one put, unless as many as may be are under way.
    pub(crate) fn enter(&self) -> Option<AdmissionTurn> {
        let limit = self.limit();
        let one_more = |count: usize| (count < limit).then_some(count + 1);
        let before = self.under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        before.ok().map(|before| AdmissionTurn { number: before + 1 })
    }

    /// Ends a turn that took so long.
    pub(crate) fn leave(&self, turn: AdmissionTurn, took: Duration, ended: PutEnded) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        let now = |pace| pace_after(pace, turn.number, took, ended);
        // It always gives one, so it cannot fail.
        let _ = self.pace.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| Some(now(it)));
    }

    /// How many puts may be under way.
    pub(crate) fn limit(&self) -> usize {
        limit(self.pace.load(Ordering::Relaxed), self.wait, self.most)
    }
}

/// How many puts may be under way on a store of this pace.
fn limit(pace: u64, wait: Duration, most: usize) -> usize {
    let answered = usize::try_from(nanos(wait) / pace.max(1)).unwrap_or(usize::MAX);
    answered.clamp(FEWEST.min(most), most)
}

/// What is known of the pace once a put has ended, which began as the `number`th under way: the
/// store has answered so many since.
fn pace_after(pace: u64, number: usize, took: Duration, ended: PutEnded) -> u64 {
    let seen = nanos(took) / number.max(FEWEST) as u64;
    match ended {
        PutEnded::Refused => pace,
        PutEnded::Failed if seen <= pace => pace,
        PutEnded::Failed | PutEnded::Stored => {
            // Of a pace below a nanosecond a put more would be nothing.
            let kept = pace.saturating_sub(pace.div_ceil(MEMORY));
            kept.saturating_add(seen / MEMORY).max(1)
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const WAIT: Duration = Duration::from_millis(400);
    const MOST: usize = 1_024;
    const AT_FIRST: usize = 32;

    /// A store that works on `beside` puts at a time, each for `each`, in the order they come in.
    #[derive(Debug, Clone, Copy)]
    struct Store {
        beside: usize,
        each: Duration,
    }

    impl Store {
        /// Puts it answers within the time one may wait.
        fn within_wait(self) -> f64 {
            self.beside as f64 * WAIT.as_secs_f64() / self.each.as_secs_f64()
        }
    }

    /// Origins that put again as soon as they are answered; as many as `origins`.
    struct World {
        admission: Admission,
        now: Duration,
        /// When each of the store's hands is free.
        hands: Vec<Duration>,
        /// Puts under way: which turn, since when, and when it ends.
        under_way: VecDeque<(AdmissionTurn, Duration, Duration)>,
    }

    impl World {
        fn new(most: usize) -> Self {
            let admission = Admission::new(most, WAIT);
            Self { admission, now: Duration::ZERO, hands: Vec::new(), under_way: VecDeque::new() }
        }

        /// Has `count` puts answered by a store; gives how long each took.
        fn put(&mut self, store: Store, origins: usize, count: usize) -> Vec<Duration> {
            self.hands.resize(store.beside, self.now);
            let mut took = Vec::new();
            while took.len() < count {
                while self.under_way.len() < origins {
                    let Some(turn) = self.admission.enter() else { break };
                    let hand = self.hands.iter_mut().min().unwrap();
                    *hand = (*hand).max(self.now) + store.each;
                    self.under_way.push_back((turn, self.now, *hand));
                }
                let (turn, begun, ends) = self.under_way.pop_front().unwrap();
                self.now = self.now.max(ends);
                self.admission.leave(turn, self.now - begun, PutEnded::Stored);
                took.push(self.now - begun);
            }
            took
        }
    }

    fn stores() -> impl Strategy<Value = Store> {
        let each = (1_u64..=400_000).prop_map(Duration::from_micros);
        (1_usize..=64, each).prop_map(|(beside, each)| Store { beside, each })
    }

    fn endings() -> impl Strategy<Value = (usize, u64, PutEnded)> {
        let ended =
            prop_oneof![Just(PutEnded::Stored), Just(PutEnded::Failed), Just(PutEnded::Refused)];
        (0_usize..5_000, any::<u64>(), ended)
    }

    proptest! {
        #[test]
        fn the_limit_stays_within_its_bounds(
            most in 1_usize..5_000,
            wait in any::<u64>(),
            endings in prop::collection::vec(endings(), 0..200),
        ) {
            let admission = Admission::new(most, Duration::from_nanos(wait));
            for (number, took, ended) in endings {
                admission.under_way.store(1, Ordering::Relaxed);
                admission.leave(AdmissionTurn { number }, Duration::from_nanos(took), ended);
                prop_assert!((FEWEST.min(most)..=most).contains(&admission.limit()));
            }
        }

        #[test]
        fn whoever_is_admitted_is_answered_in_time(store in stores(), origins in 1_usize..2_000) {
            let mut world = World::new(MOST);
            world.put(store, origins, 1_000);
            let took = world.put(store, origins, 1_000);
            // What is always given to a store may be more than it answers in time; one put that
            // takes longer than that by itself is as quick as it can be.
            let fewest = store.each.mul_f64((FEWEST as f64 / store.beside as f64).ceil());
            // And a store answers in waves: a put that comes just too late for one waits for the next.
            let allowed = WAIT.mul_f64(1.5).max(WAIT.mul_f64(1.25) + store.each);
            let allowed = allowed.max(fewest).max(store.each * 2);
            let longest = took.iter().max().copied().unwrap_or_default();
            prop_assert!(longest <= allowed, "{longest:?} with {store:?}, {allowed:?} allowed");
        }

        #[test]
        fn a_store_is_given_all_it_can_answer(mut store in stores()) {
            // Where a put by itself takes nearly all of the time nothing is learnt from those beside.
            store.each = store.each.min(WAIT / 2);
            let mut world = World::new(MOST);
            world.put(store, 5_000, 2_000);
            let limit = world.admission.limit() as f64;
            let answered = store.within_wait().clamp(FEWEST as f64, MOST as f64);
            prop_assert!(limit >= 0.6 * answered, "{limit} of {answered} with {store:?}");
        }

        #[test]
        fn few_origins_are_never_told_to_wait(store in stores(), origins in 1_usize..=FEWEST) {
            let mut world = World::new(MOST);
            for _ in 0..50 {
                world.put(store, origins, 20);
                prop_assert!(world.admission.limit() >= origins);
            }
        }
    }

    #[test]
    fn the_limit_follows_a_store_that_turns_slow_and_quick_again() {
        let quick = Store { beside: 8, each: Duration::from_millis(1) };
        let slow = Store { beside: 8, each: Duration::from_millis(100) };
        let mut world = World::new(MOST);
        world.put(quick, 2_000, 1_000);
        assert_eq!(world.admission.limit(), MOST);
        world.put(slow, 2_000, 2_000);
        let limit = world.admission.limit();
        assert!((FEWEST..=40).contains(&limit), "{limit} under way on a slow store");
        // A second of a quick store is thousands of puts.
        world.put(quick, 2_000, 500);
        assert_eq!(world.admission.limit(), MOST);
    }

    #[test]
    fn one_slow_put_changes_little() {
        let quick = Store { beside: 8, each: Duration::from_millis(1) };
        let mut world = World::new(MOST);
        world.put(quick, 8, 1_000);
        let turn = world.admission.enter().unwrap();
        world.admission.leave(turn, Duration::from_secs(2), PutEnded::Stored);
        assert!(world.admission.limit() >= 150, "{}", world.admission.limit());
        world.put(quick, 8, 300);
        assert!(world.admission.limit() >= MOST / 2, "{}", world.admission.limit());
    }

    #[test]
    fn failures_lower_the_limit_if_they_took_long_and_never_raise_it() {
        let admission = Admission::new(MOST, WAIT);
        let end = |took, ended| {
            let turn = admission.enter().unwrap();
            admission.leave(turn, took, ended);
            admission.limit()
        };
        assert_eq!(end(Duration::ZERO, PutEnded::Failed), AT_FIRST);
        assert_eq!(end(Duration::ZERO, PutEnded::Refused), AT_FIRST);
        assert_eq!(end(Duration::from_secs(60), PutEnded::Refused), AT_FIRST);
        assert!(end(Duration::from_secs(2), PutEnded::Failed) < AT_FIRST);
    }

    #[test]
    fn no_more_are_admitted_than_may_be_and_each_that_ends_makes_room() {
        let admission = Admission::new(3, WAIT);
        let turns: Vec<AdmissionTurn> = std::iter::from_fn(|| admission.enter()).collect();
        assert_eq!(turns.len(), 3);
        admission.leave(turns[0], Duration::ZERO, PutEnded::Refused);
        assert!(admission.enter().is_some() && admission.enter().is_none());
    }

    #[test]
    fn a_wait_without_end_admits_as_many_as_there_may_ever_be() {
        let admission = Admission::new(MOST, Duration::MAX);
        let turn = admission.enter().unwrap();
        admission.leave(turn, Duration::from_secs(3_600), PutEnded::Stored);
        assert_eq!(admission.limit(), MOST);
    }
}
