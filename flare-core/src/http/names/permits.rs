//! Takes a number of permits; gives them to those who ask, the newest first, and back when they
//! are dropped.
//!
//! Newest first, because of a crowd of look-ups that come at once and take long, those who come
//! later must not stand behind them. Who waits longest then is one of the crowd, and waits no longer
//! than the last one of a queue would. For the same reason those leave first who came first.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::tools::lock;
use tokio::sync::oneshot;

/// So many permits, for all that hold a clone.
#[derive(Debug, Clone)]
pub(super) struct LookupPermits {
    inner: Arc<Mutex<LookupLine>>,
}

#[derive(Debug)]
struct LookupLine {
    free: usize,
    arrivals: u64,
    /// Those who wait, the newest last.
    waiting: Vec<WaitingLookup>,
    /// Of those who have a permit, who has had it for long.
    long_held: BTreeSet<u64>,
}

/// Who waits, by when it came.
#[derive(Debug)]
struct WaitingLookup {
    arrival: u64,
    permit: oneshot::Sender<LookupPermit>,
}

impl WaitingLookup {
    fn has_left(&self) -> bool {
        self.permit.is_closed()
    }
}

impl LookupPermits {
    pub(super) fn new(permits: usize) -> Self {
        let (waiting, long_held) = (Vec::new(), BTreeSet::new());
        Self {
            inner: Arc::new(Mutex::new(LookupLine {
                free: permits,
                arrivals: 0,
                waiting,
                long_held,
            })),
        }
    }

    /// A permit, once there is one. Dropped while it waits, it waits no more.
    pub(super) async fn take(&self) -> LookupPermit {
        loop {
            let waiting = {
                let mut inner = self.lock();
                inner.arrivals += 1;
                let arrival = inner.arrivals;
                if inner.free > 0 {
                    inner.free -= 1;
                    return LookupPermit { permits: self.clone(), arrival };
                }
                // Those who gave up are forgotten here, so that the list stays as short as the crowd.
                inner.waiting.retain(|waiting| !waiting.has_left());
                let (permit, waiting) = oneshot::channel();
                inner.waiting.push(WaitingLookup { arrival, permit });
                waiting
            };
            if let Ok(permit) = waiting.await {
                return permit;
            }
        }
    }

    /// A permit, if one is free now.
    pub(super) fn try_take(&self) -> Option<LookupPermit> {
        let mut inner = self.lock();
        inner.free = inner.free.checked_sub(1)?;
        inner.arrivals += 1;
        Some(LookupPermit { permits: self.clone(), arrival: inner.arrivals })
    }

    fn give_back(&self, arrival: u64) {
        let next = {
            let mut inner = self.lock();
            inner.long_held.remove(&arrival);
            let next = std::iter::from_fn(|| inner.waiting.pop()).find(|next| !next.has_left());
            if next.is_none() {
                inner.free += 1;
            }
            next
        };
        // One who gives up at this very moment drops the permit, which gives it back again.
        if let Some(WaitingLookup { arrival, permit }) = next {
            drop(permit.send(LookupPermit { permits: self.clone(), arrival }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, LookupLine> {
        lock(&self.inner)
    }
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub(super) struct LookupPermit {
    permits: LookupPermits,
    arrival: u64,
}

impl LookupPermit {
    /// Tells whether this permit, which has been held for long, is wanted by others: as many of those
    /// that have been are as there are who wait, and those first whose holders came first.
    pub(super) fn is_wanted(&self) -> bool {
        let mut inner = self.permits.lock();
        inner.long_held.insert(self.arrival);
        let before = inner.long_held.range(..self.arrival).count();
        let waiting = inner.waiting.iter().filter(|waiting| !waiting.has_left()).count();
        before < waiting
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        self.permits.give_back(self.arrival);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_newest_of_those_who_wait_is_next() {
        let permits = LookupPermits::new(1);
        let held = permits.take().await;
        assert!(permits.try_take().is_none() && !held.is_wanted());
        let mut first = Box::pin(permits.take());
        let mut gone = Box::pin(permits.take());
        let mut last = Box::pin(permits.take());
        for waiting in [&mut first, &mut gone, &mut last] {
            assert!(waiting.now_or_never().is_none());
        }
        drop(gone);
        assert!(held.is_wanted());
        drop(held);
        assert!((&mut first).now_or_never().is_none(), "the last to come is served first");
        let held = (&mut last).now_or_never().unwrap();
        drop(held);
        let held = (&mut first).now_or_never().unwrap();
        assert!(!held.is_wanted() && permits.try_take().is_none());
        drop(held);
        assert!(permits.try_take().is_some());
    }

    #[tokio::test]
    async fn a_place_given_to_one_who_has_left_is_not_lost() {
        let permits = LookupPermits::new(1);
        let held = permits.take().await;
        let mut leaving = Box::pin(permits.take());
        assert!((&mut leaving).now_or_never().is_none());
        drop(held);
        // The permit is on its way to it.
        assert!(permits.try_take().is_none());
        drop(leaving);
        assert!(permits.try_take().is_some());
    }

    #[tokio::test]
    async fn as_many_leave_as_are_waiting_those_first_who_came_first() {
        let permits = LookupPermits::new(3);
        let held = [permits.take().await, permits.take().await, permits.take().await];
        let mut waiting = [Box::pin(permits.take()), Box::pin(permits.take())];
        for waiting in &mut waiting {
            assert!(waiting.now_or_never().is_none());
        }
        // The second has not held its permit for long yet.
        assert!(held[0].is_wanted() && held[2].is_wanted());
        assert!(held[1].is_wanted(), "two have to leave, and one of them came before");
        assert!(!held[2].is_wanted(), "the last to come stays");
    }
}
