//! The next of the times a lane wants to be woken at, and one sleep until then that lasts from wait to wait for as long as that time stays the same.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::model::Timestamp;
use crate::pipeline::store_clock::StoreClock;

/// The next of these times after `begun_at`, when everything that was due by then was begun.
///
/// Never that time itself or one before it: an alarm that rings leaves the clock later than the one
/// before it did, so a lane that waits by this does not spin, whatever it leaves undone.
pub(super) fn next_after(
    begun_at: Timestamp,
    times: impl IntoIterator<Item = Option<Timestamp>>,
) -> Option<Timestamp> {
    times.into_iter().flatten().filter(|at| *at > begun_at).min()
}

/// An alarm that is set before each wait, and costs nothing if the time has not changed.
#[derive(Default)]
pub(super) struct Alarm(Option<(Timestamp, BoxFuture<'static, ()>)>);

impl Alarm {
    /// Rings at `at`, and at no other time; without one, never.
    pub(super) fn set(&mut self, at: Option<Timestamp>, clock: &Arc<StoreClock>) {
        let Some(at) = at else {
            self.0 = None;
            return;
        };
        if self.0.as_ref().is_none_or(|(set, _)| *set != at) {
            let clock = Arc::clone(clock);
            self.0 = Some((at, async move { clock.sleep_until(at).await }.boxed()));
        }
    }

    /// Returns when it rings; an alarm that is not set never does.
    pub(super) async fn rings(&mut self) {
        match &mut self.0 {
            Some((_, alarm)) => alarm.await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = Vec<Option<Timestamp>>> {
        let time = (-50_i64..50).prop_map(Timestamp::from_unix_nanos);
        let edge = prop_oneof![Just(Timestamp::EPOCH), Just(Timestamp::MAX), time];
        proptest::collection::vec(proptest::option::of(edge), 0..8)
    }

    proptest! {
        /// A lane that does nothing but wait for the next time waits once for each of them: no time
        /// wakes twice, and none is left out.
        #[test]
        fn no_time_wakes_twice_and_none_is_missed(begun in -50_i64..50, times in times()) {
            let begun = Timestamp::from_unix_nanos(begun);
            let mut now = begun;
            let mut rung = Vec::new();
            while let Some(at) = next_after(now, times.iter().copied()) {
                prop_assert!(at > now);
                rung.push(at);
                now = at;
            }
            let mut due: Vec<_> = times.into_iter().flatten().filter(|at| *at > begun).collect();
            due.sort_unstable();
            due.dedup();
            prop_assert_eq!(rung, due);
        }
    }
}
