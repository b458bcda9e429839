//! Takes requests that want to be made; gives each a place when its turn has come. Requests that
//! only wait for a slow client don't keep others from being made.

use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pipeline::settings::Settings;

/// No lane takes more than this part of the places at once.
const SHARE: usize = 8;

/// The places among all requests of a runtime.
///
/// Few requests at a time cost least: what they touch stays in the processor's caches. But one
/// that waits for its client costs nothing, and there may be many such clients. So few may be
/// young at a time, and many may be under way. Places are given out several at once: a lane that
/// sends, and stores, several together does so for less.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    young: Arc<Semaphore>,
    /// How many there are of each.
    limits: (usize, usize),
    most: usize,
}

/// How much of the places is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Requests under way, or about to be.
    pub(crate) in_flight: u64,
    /// The part of all places, or of those of young requests if that is more.
    pub(crate) percent: u64,
}

impl Places {
    pub(crate) fn new(settings: &Settings) -> Self {
        let Settings { in_flight_limit, young_limit, .. } = *settings;
        Self {
            all: Arc::new(Semaphore::new(in_flight_limit)),
            young: Arc::new(Semaphore::new(young_limit)),
            limits: (in_flight_limit, young_limit),
            most: (in_flight_limit.min(young_limit) / SHARE).max(1),
        }
    }

    /// Places for `wanted` requests or as many as one may have, if they are free and nobody is in
    /// line for them. A lane that is `idle` may always make one: clients that hang, however many,
    /// must not take the last place from others.
    pub(super) fn try_take(&self, wanted: usize, idle: bool) -> Option<Held> {
        let count = self.count(wanted);
        let all = Arc::clone(&self.all).try_acquire_many_owned(count).ok();
        let count = match &all {
            Some(_) => count,
            None if idle => 1,
            None => return None,
        };
        let young = Arc::clone(&self.young).try_acquire_many_owned(count).ok()?;
        Some(Held(Place { all, young }))
    }

    /// The same, in line behind the other lanes. `None` if there will never be any.
    pub(super) async fn take(self, wanted: usize, idle: bool) -> Option<Held> {
        let count = self.count(wanted);
        let all = match Arc::clone(&self.all).try_acquire_many_owned(count) {
            Ok(all) => Some(all),
            Err(_) if idle => None,
            Err(_) => Some(self.all.acquire_many_owned(count).await.ok()?),
        };
        let count = if all.is_some() { count } else { 1 };
        let young = self.young.acquire_many_owned(count).await.ok()?;
        Some(Held(Place { all, young }))
    }

    /// How much of it is taken.
    pub(crate) fn usage(&self) -> Usage {
        let taken = |all: usize, free: usize| all.saturating_sub(free);
        let all = taken(self.limits.0, self.all.available_permits());
        let young = taken(self.limits.1, self.young.available_permits());
        let percent = |taken: usize, of: usize| taken as u64 * 100 / of.max(1) as u64;
        let percent = percent(all, self.limits.0).max(percent(young, self.limits.1));
        Usage { in_flight: all as u64, percent }
    }

    fn count(&self, wanted: usize) -> u32 {
        wanted.clamp(1, self.most) as u32
    }
}

/// Places for the next requests of a lane.
#[derive(Debug)]
pub(super) struct Held(Place);

impl Held {
    /// One of them, if one is left.
    pub(super) fn next(&mut self) -> Option<Place> {
        let all = match &mut self.0.all {
            Some(all) => Some(all.split(1)?),
            None => None,
        };
        Some(Place { all, young: self.0.young.split(1)? })
    }
}

/// One request's place.
#[derive(Debug)]
pub(super) struct Place {
    all: Option<OwnedSemaphorePermit>,
    young: OwnedSemaphorePermit,
}

impl Place {
    /// Makes a request; it counts as young until `aged` is ready.
    pub(super) async fn hold<R: Future>(
        self,
        request: R,
        aged: impl Future<Output = ()>,
    ) -> R::Output {
        let Self { all: _all, young } = self;
        match select(pin!(request), pin!(aged)).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(((), request)) => {
                drop(young);
                request.await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{pending, ready};

    use super::*;

    fn places(in_flight: usize, young: usize) -> Places {
        let settings =
            Settings { in_flight_limit: in_flight, young_limit: young, ..Settings::default() };
        Places::new(&settings)
    }

    fn one(places: &Places) -> Option<Place> {
        places.try_take(1, false)?.next()
    }

    #[test]
    fn a_request_that_aged_makes_room_until_all_places_are_taken() {
        let places = places(2, 1);
        let mut first = one(&places).unwrap().hold(pending::<()>(), ready(())).boxed();
        assert!(one(&places).is_none(), "the first is young");
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(places.usage(), Usage { in_flight: 1, percent: 50 }, "one of two, none young");
        let second = one(&places).unwrap();
        assert!(one(&places).is_none(), "two are under way");
        assert_eq!(places.usage(), Usage { in_flight: 2, percent: 100 });
        drop(first);
        assert!(one(&places).is_none(), "the second is young");
        drop(second);
        assert!(one(&places).is_some());
    }

    #[test]
    fn places_come_back_when_requests_end_or_are_dropped() {
        let places = places(1, 1);
        for _ in 0..3 {
            let mut held = places.clone().take(5, false).now_or_never().flatten().unwrap();
            assert_eq!(held.next().unwrap().hold(ready(7), pending()).now_or_never(), Some(7));
            assert!(held.next().is_none());
            drop(one(&places).unwrap().hold(pending::<()>(), pending()));
        }
    }

    #[test]
    fn nobody_takes_all_at_once() {
        let places = places(1_000, 80);
        let mut held = places.try_take(100, false).unwrap();
        let taken: Vec<Place> = std::iter::from_fn(|| held.next()).collect();
        assert_eq!(taken.len(), 10);
        assert_eq!(places.young.available_permits(), 70);
    }

    #[test]
    fn clients_that_hang_leave_every_idle_lane_a_place() {
        let places = places(1, 4);
        let _hangs = one(&places).unwrap();
        assert!(one(&places).is_none());
        let mut held = places.try_take(3, true).unwrap();
        let first = held.next().unwrap();
        assert!(held.next().is_none(), "one, not more");
        let waited = places.clone().take(3, true).now_or_never().flatten();
        assert!(waited.unwrap().next().is_some());
        drop(first);
    }
}
