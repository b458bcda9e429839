//! Takes requests that want to be made; gives each a place when its turn has come. Requests that
//! only wait for a slow client don't keep others from being made.

use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pipeline::settings::Settings;

/// The places among all requests of a runtime.
///
/// Few requests at a time cost least: what they touch stays in the processor's caches. But one
/// that waits for its client costs nothing, and there may be many such clients. So few may be
/// young at a time, and many may be under way.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    young: Arc<Semaphore>,
}

impl Places {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            all: Arc::new(Semaphore::new(settings.in_flight_limit)),
            young: Arc::new(Semaphore::new(settings.young_limit)),
        }
    }

    /// A place, if one is free and nobody is in line for it.
    pub(super) fn try_take(&self) -> Option<Place> {
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let young = Arc::clone(&self.young).try_acquire_owned().ok()?;
        Some(Place { all, young })
    }

    /// A place, in line behind the other lanes. `None` if there will never be any.
    pub(super) async fn take(self) -> Option<Place> {
        let all = self.all.acquire_owned().await.ok()?;
        let young = self.young.acquire_owned().await.ok()?;
        Some(Place { all, young })
    }
}

/// One request's place.
#[derive(Debug)]
pub(super) struct Place {
    all: OwnedSemaphorePermit,
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

    #[test]
    fn a_request_that_aged_makes_room_until_all_places_are_taken() {
        let places = places(2, 1);
        let mut first = places.try_take().unwrap().hold(pending::<()>(), ready(())).boxed();
        assert!(places.try_take().is_none(), "the first is young");
        assert!(first.as_mut().now_or_never().is_none());
        let second = places.try_take().unwrap();
        assert!(places.try_take().is_none(), "two are under way");
        drop(first);
        assert!(places.try_take().is_none(), "the second is young");
        drop(second);
        assert!(places.try_take().is_some());
    }

    #[test]
    fn places_come_back_when_requests_end_or_are_dropped() {
        let places = places(1, 1);
        for _ in 0..3 {
            let place = places.clone().take().now_or_never().flatten().unwrap();
            assert_eq!(place.hold(ready(7), pending()).now_or_never(), Some(7));
            drop(places.try_take().unwrap().hold(pending::<()>(), pending()));
        }
    }
}
