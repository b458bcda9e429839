//! The store's time, as it can be told from here: asked for now and then, and counted on by the
//! monotonic clock in between. All that is stored is due, old or held by this time, whatever the wall
//! clock of this machine shows and whether the machine slept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tracing::warn;

use super::context::Context;
use super::stage::{chain, pause_after};
use super::stop::Stop;
use crate::error::Result;
use crate::model::Timestamp;
use crate::port::{Clock, Repository};

/// How often the store is asked: clocks drift apart, and a store may be moved to another machine.
const EVERY: Duration = Duration::from_secs(60);
/// An answer that takes longer tells too little of the store's clock, which was read at some time during
/// it: a process that was frozen meanwhile would take that clock for as far ahead as it was frozen.
const SOON: Duration = Duration::from_secs(1);
/// On a store that always takes longer, so many answers have to do.
const TRIES: u32 = 3;

/// Tells the store's time.
#[derive(Debug)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    /// Store time less monotonic time, in nanoseconds. Before the store was asked it is what the wall
    /// clock showed.
    offset: AtomicI64,
    /// Whether the store has answered at all.
    answered: AtomicBool,
    known: watch::Sender<bool>,
}

impl StoreClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let guess = clock.now().unix_nanos().saturating_sub(nanos(clock.monotonic()));
        let (offset, answered) = (AtomicI64::new(guess), AtomicBool::new(false));
        Self { clock, offset, answered, known: watch::Sender::new(false) }
    }

    /// The store's time: never less than it is, as far as that is known, so that nothing that is due is
    /// taken for early.
    pub(crate) fn now(&self) -> Timestamp {
        let offset = self.offset.load(Ordering::Acquire);
        Timestamp::from_unix_nanos(nanos(self.clock.monotonic()).saturating_add(offset))
    }

    /// The store's time, which is asked for if it never was.
    pub(crate) async fn read(&self, store: &dyn Repository) -> Result<Timestamp> {
        let mut tries = 0;
        while !*self.known.borrow() {
            tries += 1;
            if self.ask(store).await? <= SOON || tries == TRIES {
                self.known.send_replace(true);
            }
        }
        Ok(self.now())
    }

    /// Waits until the store was asked.
    pub(crate) async fn known(&self) {
        // The sender is ours.
        let _ = self.known.subscribe().wait_for(|known| *known).await;
    }

    /// Asks the store, and tells how long that took.
    async fn ask(&self, store: &dyn Repository) -> Result<Duration> {
        let before = self.clock.monotonic();
        let time = store.store_time().await?;
        let after = self.clock.monotonic();
        self.learn(before, time, after);
        Ok(after.saturating_sub(before))
    }

    /// It was that time at some moment between those two. What fits to that is left as it is.
    fn learn(&self, before: Duration, time: Timestamp, after: Duration) {
        let offset = |monotonic| time.unix_nanos().saturating_sub(nanos(monotonic));
        let (least, most) = (offset(after), offset(before));
        let again = self.answered.swap(true, Ordering::AcqRel);
        let next = |offset: i64| Some(if again { offset.clamp(least, most) } else { most });
        // Given a value, it always takes place.
        let _ = self.offset.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    /// Waits until then.
    pub(crate) async fn sleep_until(&self, deadline: Timestamp) {
        loop {
            let left = deadline - self.now();
            if left.is_zero() {
                return;
            }
            self.clock.sleep(left.min(EVERY)).await;
        }
    }
}

/// Asks for the store's time now and then, until told to stop.
pub(crate) async fn keep_time(context: Arc<Context>, mut stop: Stop) {
    let mut failures = 0;
    loop {
        let (time, store) = (&context.store_clock, &*context.repository);
        let asked = async {
            time.read(store).await?;
            time.ask(store).await
        };
        let asked = tokio::select! {
            biased;
            () = stop.requested() => return,
            asked = asked => asked,
        };
        let pause = match asked {
            Ok(_) => {
                failures = 0;
                EVERY
            }
            Err(error) => {
                failures += 1;
                warn!(error = %chain(&error), "could not ask for the store's time, will retry");
                pause_after(failures)
            }
        };
        tokio::select! {
            biased;
            () = stop.requested() => return,
            () = context.sleep(context.jittered(pause)) => {}
        }
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::port::clock::At;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_unix_seconds(second)
    }

    #[test]
    fn a_first_answer_is_taken_as_the_latest_it_may_mean_and_a_closer_one_in_its_place() {
        let time = StoreClock::new(Arc::new(At::second(100)));
        // Asked at 10, answered at 90: frozen in between.
        time.learn(seconds(10), at(5_000), seconds(90));
        assert_eq!(time.now(), at(5_090));
        time.learn(seconds(95), at(5_006), seconds(96));
        assert_eq!(time.now(), at(5_011));
    }

    #[test]
    fn what_fits_to_an_answer_stays_and_a_store_whose_clock_moved_is_followed() {
        let time = StoreClock::new(Arc::new(At::second(100)));
        time.learn(seconds(99), at(5_000), seconds(100));
        let told = time.now();
        time.learn(seconds(50), at(4_960), seconds(100));
        assert_eq!(time.now(), told, "asked by a process that was frozen meanwhile");
        time.learn(seconds(99), at(9_000), seconds(100));
        assert_eq!(time.now(), at(9_000));
        time.learn(seconds(99), at(3_000), seconds(100));
        assert_eq!(time.now(), at(3_001));
    }

    proptest! {
        /// However long answers take, the time is never told as less than it is, nor as more than the
        /// quickest answer leaves open.
        #[test]
        fn the_time_is_told_as_closely_as_the_quickest_answer_allows(
            answers in proptest::collection::vec((0_u64..50, 0_u64..50), 1..8),
        ) {
            const AHEAD: i64 = 1_000;
            let time = StoreClock::new(Arc::new(At::second(100)));
            for (sent, back) in &answers {
                let asked = 50 - sent;
                let answered = 50 + back;
                time.learn(seconds(asked), at(50 + AHEAD), seconds(answered));
            }
            let told = time.now() - at(100 + AHEAD);
            let quickest = answers.iter().map(|(sent, _)| *sent).min().unwrap();
            prop_assert!(time.now() >= at(100 + AHEAD));
            prop_assert!(told <= seconds(quickest), "{told:?}");
        }
    }
}
