//! Takes requests that want to be made; gives each a permit when its turn has come. Clients that are
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

/// The permits among all requests of a runtime.
///
/// Few requests at a time cost least: what they touch stays in the processor's caches. But one
/// that waits for its client costs nothing, and there may be many such clients. So few may be
/// young at a time, and many may be under way. Who may have how many is [`Sharing`]'s to say.
#[derive(Debug, Clone)]
pub(crate) struct SendLimit {
    line: Arc<Mutex<Line>>,
    /// How many there are, and how many of young requests.
    limits: (usize, usize),
}

/// How much of the permits is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Requests under way, or about to be.
    pub(crate) in_flight: u64,
    /// The part of all permits, or of those of young requests if that is more.
    pub(crate) percent: u64,
}

#[derive(Debug)]
struct Line {
    sharing: Sharing,
    /// Who is to be told when their turn has come.
    waiting: HashMap<Ticket, oneshot::Sender<SendPermits>>,
}

impl SendLimit {
    pub(crate) fn new(settings: &Settings) -> Self {
        let limits = (settings.in_flight_limit, settings.young_limit);
        let sharing = Sharing::new(limits.0, limits.1);
        Self { line: Arc::new(Mutex::new(Line { sharing, waiting: HashMap::new() })), limits }
    }

    /// The permits of a client, for one of its lanes.
    pub(super) fn of(&self, client: SubscriptionId) -> ClientPermits {
        self.lock().sharing.join(client);
        ClientPermits { limit: self.clone(), client }
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

    /// Changes what is shared, and gives permits to whose turn it is then.
    fn change(&self, change: impl FnOnce(&mut Sharing)) {
        let mut line = self.lock();
        change(&mut line.sharing);
        let mut given = Vec::new();
        while let Some((ticket, count)) = line.sharing.serve() {
            let held = SendPermits::new(self, ticket.client(), count);
            given.push((line.waiting.remove(&ticket), held));
        }
        // A lane that has left meanwhile gives them back at once, for which the line must be free.
        drop(line);
        for (waiting, held) in given {
            if let Some(waiting) = waiting {
                let _ = waiting.send(held);
            }
        }
    }
}

/// The permits of one client, as one of its lanes sees them.
#[derive(Debug)]
pub(super) struct ClientPermits {
    limit: SendLimit,
    client: SubscriptionId,
}

impl ClientPermits {
    /// Whether the client is slow, or has not shown yet that it is not.
    pub(super) fn is_slow(&self) -> bool {
        self.limit.lock().sharing.is_slow(self.client)
    }

    /// Permits for `wanted` requests or as many as it may have, if it may have some now.
    pub(super) fn try_take(&self, wanted: usize) -> Option<SendPermits> {
        let count = self.limit.lock().sharing.try_take(self.client, wanted)?;
        Some(SendPermits::new(&self.limit, self.client, count))
    }

    /// The same, in line with the other clients. `None` if there will never be any.
    pub(super) fn take(
        &self,
        wanted: usize,
    ) -> impl Future<Output = Option<SendPermits>> + Send + use<> {
        let (tell, told) = oneshot::channel();
        let mut line = self.limit.lock();
        let ticket = line.sharing.wait(self.client, wanted);
        line.waiting.insert(ticket, tell);
        drop(line);
        let waiting = WaitingPermits { limit: self.limit.clone(), ticket };
        async move {
            let held = told.await.ok();
            drop(waiting);
            held
        }
    }
}

impl Drop for ClientPermits {
    fn drop(&mut self) {
        self.limit.change(|sharing| sharing.leave(self.client));
    }
}

/// What a lane asked for, forgotten with this.
struct WaitingPermits {
    limit: SendLimit,
    ticket: Ticket,
}

impl Drop for WaitingPermits {
    fn drop(&mut self) {
        let waiting = self.limit.lock().waiting.remove(&self.ticket);
        if waiting.is_some() {
            // Others may have waited behind it.
            self.limit.change(|sharing| sharing.cancel(self.ticket));
        }
    }
}

/// Permits for the next requests of a client.
#[derive(Debug)]
pub(super) struct SendPermits {
    limit: SendLimit,
    client: SubscriptionId,
    count: usize,
    /// Whether they are counted as those of young requests.
    young: bool,
}

impl SendPermits {
    fn new(limit: &SendLimit, client: SubscriptionId, count: usize) -> Self {
        Self { limit: limit.clone(), client, count, young: true }
    }

    /// How many are left.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// One of them, if one is left.
    pub(super) fn next(&mut self) -> Option<SendPermit> {
        self.count = self.count.checked_sub(1)?;
        if !self.young {
            self.limit.lock().sharing.used();
        }
        let (limit, client) = (self.limit.clone(), self.client);
        Some(SendPermit { limit, client, young: true, quick: false })
    }

    /// Keeps them for requests that cannot be made at once, without keeping others from being young.
    pub(super) fn keep(&mut self) {
        if std::mem::take(&mut self.young) {
            self.limit.change(|sharing| (0..self.count).for_each(|_| sharing.aged()));
        }
    }
}

impl Drop for SendPermits {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        self.limit.change(|sharing| {
            for _ in 0..self.count {
                if self.young {
                    sharing.aged();
                }
                sharing.release(self.client);
            }
        });
    }
}

/// One request's permit.
#[derive(Debug)]
pub(super) struct SendPermit {
    limit: SendLimit,
    client: SubscriptionId,
    young: bool,
    /// Whether the request ended before it took long.
    quick: bool,
}

impl SendPermit {
    /// Makes a request. It counts as young until `aged` is ready; if it is not answered when `long`
    /// is ready too, that says of its client that it is slow.
    pub(super) async fn during<R: Future>(
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
        self.limit.change(Sharing::aged);
        if let Either::Left((outcome, _)) = select(request.as_mut(), pin!(long)).await {
            self.quick = true;
            return outcome;
        }
        self.limit.change(|sharing| sharing.showed(self.client, true));
        request.await
    }
}

impl Drop for SendPermit {
    fn drop(&mut self) {
        self.limit.change(|sharing| {
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

    fn limit(in_flight: usize, young: usize) -> SendLimit {
        let settings =
            Settings { in_flight_limit: in_flight, young_limit: young, ..Settings::default() };
        SendLimit::new(&settings)
    }

    fn client(limit: &SendLimit, number: u8) -> ClientPermits {
        limit.of(SubscriptionId::from_bytes([number; 16]))
    }

    fn one(client: &ClientPermits) -> Option<SendPermit> {
        client.try_take(1)?.next()
    }

    /// A request that is under way, and no longer young if said so.
    fn under_way(permit: SendPermit, old: bool) -> BoxFuture<'static, ()> {
        let aged = if old { ready(()).boxed() } else { pending().boxed() };
        let mut request = permit.during(pending::<()>(), aged, pending()).boxed();
        assert!(request.as_mut().now_or_never().is_none());
        request
    }

    #[test]
    fn a_request_that_aged_makes_room_for_another_one() {
        let limit = limit(8, 1);
        let [a, b] = [1, 2].map(|number| client(&limit, number));
        let first = under_way(one(&a).unwrap(), false);
        assert!(one(&b).is_none(), "the first is young");
        drop(first);
        let first = under_way(one(&a).unwrap(), true);
        assert_eq!(limit.usage(), Usage { in_flight: 1, percent: 12 }, "one of eight, none young");
        let second = one(&b).unwrap();
        assert_eq!(limit.usage(), Usage { in_flight: 2, percent: 100 });
        drop((first, second));
        assert_eq!(limit.usage(), Usage { in_flight: 0, percent: 0 });
    }

    #[test]
    fn places_come_back_when_requests_end_or_are_dropped() {
        let limit = limit(1, 1);
        let client = client(&limit, 1);
        for _ in 0..3 {
            let mut held = client.take(5).now_or_never();
            assert!(held.is_none(), "it is told when others are done");
            let mut held_now = client.try_take(5).unwrap();
            let permit = held_now.next().unwrap();
            assert_eq!(permit.during(ready(7), pending(), pending()).now_or_never(), Some(7));
            assert!(held_now.next().is_none());
            drop(under_way(one(&client).unwrap(), true));
            drop(held.take());
        }
        assert_eq!(limit.usage().in_flight, 0);
    }

    #[test]
    fn whoever_waits_is_told_and_whoever_left_is_not_waited_for() {
        let limit = limit(8, 1);
        let [a, b, c] = [1, 2, 3].map(|number| client(&limit, number));
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
        assert_eq!(limit.usage().in_flight, 1);
        drop(told);
        assert_eq!(limit.usage().in_flight, 0);
    }

    #[test]
    fn what_is_kept_for_later_does_not_count_as_young() {
        let limit = limit(8, 1);
        let [a, b] = [1, 2].map(|number| client(&limit, number));
        let mut held = a.try_take(1).unwrap();
        held.keep();
        assert!(one(&b).is_some());
        assert!(held.next().is_some());
        assert_eq!(limit.usage(), Usage { in_flight: 0, percent: 0 });
    }

    #[test]
    fn a_client_is_slow_until_it_has_shown_that_it_is_not() {
        let limit = limit(100, 100);
        let client = client(&limit, 1);
        assert!(client.is_slow());
        for _ in 0..8 {
            let permit = one(&client).unwrap();
            permit.during(ready(()), pending(), pending()).now_or_never().unwrap();
        }
        assert!(!client.is_slow());
        let mut long = Vec::new();
        for _ in 0..8 {
            let permit = one(&client).unwrap();
            let mut request = permit.during(pending::<()>(), ready(()), ready(())).boxed();
            assert!(request.as_mut().now_or_never().is_none());
            long.push(request);
        }
        assert!(client.is_slow(), "before any of them has ended");
    }
}
