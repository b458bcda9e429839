//! Takes requests that want to be made; gives each a place when its turn has come. Clients that are
//! slow or hang don't keep others from theirs.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::{Either, select};
use tokio::sync::oneshot;

use super::sharing::{Sharing, Ticket};
use crate::model::SubscriptionId;
use crate::pipeline::settings::Settings;
use crate::tools::lock;

/// The places among all requests of a runtime.
///
/// Few requests at a time cost least: what they touch stays in the processor's caches. But one
/// that waits for its client costs nothing, and there may be many such clients. So few may be
/// young at a time, and many may be under way. Who may have how many is [`Sharing`]'s to say.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    line: Arc<Mutex<Line>>,
    /// How many there are, and how many of young requests.
    limits: (usize, usize),
}

/// How much of the places is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Requests under way, or about to be.
    pub(crate) in_flight: u64,
    /// The part of all places, or of those of young requests if that is more.
    pub(crate) percent: u64,
}

#[derive(Debug)]
struct Line {
    sharing: Sharing,
    /// Who is to be told when their turn has come.
    waiting: HashMap<Ticket, oneshot::Sender<HeldPlaces>>,
}

impl Places {
    pub(crate) fn new(settings: &Settings) -> Self {
        let limits = (settings.in_flight_limit, settings.young_limit);
        let sharing = Sharing::new(limits.0, limits.1);
        Self { line: Arc::new(Mutex::new(Line { sharing, waiting: HashMap::new() })), limits }
    }

    /// The places of a client, for one of its lanes.
    pub(super) fn of(&self, client: SubscriptionId) -> ClientPlaces {
        self.lock().sharing.join(client);
        ClientPlaces { places: self.clone(), client }
    }

    /// How much of it is taken.
    pub(crate) fn usage(&self) -> Usage {
        let (all, young) = self.lock().sharing.taken();
        let percent = |taken: usize, of: usize| (taken as u64 * 100 / of.max(1) as u64).min(100);
        let percent = percent(all, self.limits.0).max(percent(young, self.limits.1));
        Usage { in_flight: all as u64, percent }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        lock(&self.line)
    }

    /// Changes what is shared, and gives places to whose turn it is then.
    fn change(&self, change: impl FnOnce(&mut Sharing)) {
        let mut line = self.lock();
        change(&mut line.sharing);
        let mut given = Vec::new();
        while let Some((ticket, count)) = line.sharing.serve() {
            let held = HeldPlaces::new(self, ticket.client(), count);
            given.push((line.waiting.remove(&ticket), held));
        }
        // Whoever has left meanwhile gives them back at once, for which the line must be free.
        drop(line);
        for (waiting, held) in given {
            if let Some(waiting) = waiting {
                let _ = waiting.send(held);
            }
        }
    }
}

/// The places of one client, as one of its lanes sees them.
#[derive(Debug)]
pub(super) struct ClientPlaces {
    places: Places,
    client: SubscriptionId,
}

impl ClientPlaces {
    /// Whether the client is slow, or has not shown yet that it is not.
    pub(super) fn is_slow(&self) -> bool {
        self.places.lock().sharing.is_slow(self.client)
    }

    /// Places for `wanted` requests or as many as it may have, if it may have some now.
    pub(super) fn try_take(&self, wanted: usize) -> Option<HeldPlaces> {
        let count = self.places.lock().sharing.try_take(self.client, wanted)?;
        Some(HeldPlaces::new(&self.places, self.client, count))
    }

    /// The same, in line with the other clients. `None` if there will never be any.
    pub(super) fn take(
        &self,
        wanted: usize,
    ) -> impl Future<Output = Option<HeldPlaces>> + Send + use<> {
        let (tell, told) = oneshot::channel();
        let mut line = self.places.lock();
        let ticket = line.sharing.wait(self.client, wanted);
        line.waiting.insert(ticket, tell);
        drop(line);
        let waiting = WaitingPlace { places: self.places.clone(), ticket };
        async move {
            let held = told.await.ok();
            drop(waiting);
            held
        }
    }
}

impl Drop for ClientPlaces {
    fn drop(&mut self) {
        self.places.change(|sharing| sharing.leave(self.client));
    }
}

/// A wish that is forgotten with this.
struct WaitingPlace {
    places: Places,
    ticket: Ticket,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let waiting = self.places.lock().waiting.remove(&self.ticket);
        if waiting.is_some() {
            // Others may have waited behind it.
            self.places.change(|sharing| sharing.cancel(self.ticket));
        }
    }
}

/// Places for the next requests of a client.
#[derive(Debug)]
pub(super) struct HeldPlaces {
    places: Places,
    client: SubscriptionId,
    count: usize,
    /// Whether they are counted as those of young requests.
    young: bool,
}

impl HeldPlaces {
    fn new(places: &Places, client: SubscriptionId, count: usize) -> Self {
        Self { places: places.clone(), client, count, young: true }
    }

    /// How many are left.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// One of them, if one is left.
    pub(super) fn next(&mut self) -> Option<Place> {
        self.count = self.count.checked_sub(1)?;
        if !self.young {
            self.places.lock().sharing.used();
        }
        let (places, client) = (self.places.clone(), self.client);
        Some(Place { places, client, young: true, quick: false })
    }

    /// Keeps them for requests that cannot be made at once, without keeping others from being young.
    pub(super) fn keep(&mut self) {
        if std::mem::take(&mut self.young) {
            self.places.change(|sharing| (0..self.count).for_each(|_| sharing.aged()));
        }
    }
}

impl Drop for HeldPlaces {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        self.places.change(|sharing| {
            for _ in 0..self.count {
                if self.young {
                    sharing.aged();
                }
                sharing.release(self.client);
            }
        });
    }
}

/// One request's place.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    client: SubscriptionId,
    young: bool,
    /// Whether the request ended before it took long.
    quick: bool,
}

impl Place {
    /// Makes a request. It counts as young until `aged` is ready; if it is not answered when `long`
    /// is ready too, that says of its client that it is slow.
    pub(super) async fn hold<R: Future>(
        mut self,
        request: R,
        aged: impl Future<Output = ()>,
        long: impl Future<Output = ()>,
    ) -> R::Output {
        let mut request = pin!(request);
        if let Either::Left((outcome, _)) = select(request.as_mut(), pin!(aged)).await {
            self.quick = true;
            return outcome;
        }
        self.young = false;
        self.places.change(Sharing::aged);
        if let Either::Left((outcome, _)) = select(request.as_mut(), pin!(long)).await {
            self.quick = true;
            return outcome;
        }
        self.places.change(|sharing| sharing.showed(self.client, true));
        request.await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.change(|sharing| {
            if self.young {
                sharing.aged();
            }
            if self.quick {
                sharing.showed(self.client, false);
            }
            sharing.release(self.client);
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{BoxFuture, pending, ready};

    use super::*;

    fn places(in_flight: usize, young: usize) -> Places {
        let settings =
            Settings { in_flight_limit: in_flight, young_limit: young, ..Settings::default() };
        Places::new(&settings)
    }

    fn client(places: &Places, number: u8) -> ClientPlaces {
        places.of(SubscriptionId::from_bytes([number; 16]))
    }

    fn one(client: &ClientPlaces) -> Option<Place> {
        client.try_take(1)?.next()
    }

    /// A request that is under way, and no longer young if said so.
    fn under_way(place: Place, old: bool) -> BoxFuture<'static, ()> {
        let aged = if old { ready(()).boxed() } else { pending().boxed() };
        let mut request = place.hold(pending::<()>(), aged, pending()).boxed();
        assert!(request.as_mut().now_or_never().is_none());
        request
    }

    #[test]
    fn a_request_that_aged_makes_room_for_another_one() {
        let places = places(8, 1);
        let [a, b] = [1, 2].map(|number| client(&places, number));
        let first = under_way(one(&a).unwrap(), false);
        assert!(one(&b).is_none(), "the first is young");
        drop(first);
        let first = under_way(one(&a).unwrap(), true);
        assert_eq!(places.usage(), Usage { in_flight: 1, percent: 12 }, "one of eight, none young");
        let second = one(&b).unwrap();
        assert_eq!(places.usage(), Usage { in_flight: 2, percent: 100 });
        drop((first, second));
        assert_eq!(places.usage(), Usage { in_flight: 0, percent: 0 });
    }

    #[test]
    fn places_come_back_when_requests_end_or_are_dropped() {
        let places = places(1, 1);
        let client = client(&places, 1);
        for _ in 0..3 {
            let mut held = client.take(5).now_or_never();
            assert!(held.is_none(), "it is told when others are done");
            let mut held_now = client.try_take(5).unwrap();
            let place = held_now.next().unwrap();
            assert_eq!(place.hold(ready(7), pending(), pending()).now_or_never(), Some(7));
            assert!(held_now.next().is_none());
            drop(under_way(one(&client).unwrap(), true));
            drop(held.take());
        }
        assert_eq!(places.usage().in_flight, 0);
    }

    #[test]
    fn whoever_waits_is_told_and_whoever_left_is_not_waited_for() {
        let places = places(8, 1);
        let [a, b, c] = [1, 2, 3].map(|number| client(&places, number));
        let busy = one(&a).unwrap();
        let (gone, mut waits) = (b.take(1).boxed(), c.take(1).boxed());
        assert!(waits.as_mut().now_or_never().is_none());
        drop(gone);
        drop(busy);
        let mut held = waits.now_or_never().flatten().unwrap();
        assert!(held.next().is_some() && held.next().is_none());
        // One that is told and leaves before it hears of it gives back what it was given.
        let busy = one(&a).unwrap();
        let told = b.take(1);
        drop(busy);
        assert_eq!(places.usage().in_flight, 1);
        drop(told);
        assert_eq!(places.usage().in_flight, 0);
    }

    #[test]
    fn what_is_kept_for_later_does_not_count_as_young() {
        let places = places(8, 1);
        let [a, b] = [1, 2].map(|number| client(&places, number));
        let mut held = a.try_take(1).unwrap();
        held.keep();
        assert!(one(&b).is_some());
        assert!(held.next().is_some());
        assert_eq!(places.usage(), Usage { in_flight: 0, percent: 0 });
    }

    #[test]
    fn a_client_is_slow_until_it_has_shown_that_it_is_not() {
        let places = places(100, 100);
        let client = client(&places, 1);
        assert!(client.is_slow());
        for _ in 0..8 {
            let place = one(&client).unwrap();
            place.hold(ready(()), pending(), pending()).now_or_never().unwrap();
        }
        assert!(!client.is_slow());
        let mut long = Vec::new();
        for _ in 0..8 {
            let place = one(&client).unwrap();
            let mut request = place.hold(pending::<()>(), ready(()), ready(())).boxed();
            assert!(request.as_mut().now_or_never().is_none());
            long.push(request);
        }
        assert!(client.is_slow(), "before any of them has ended");
    }
}
