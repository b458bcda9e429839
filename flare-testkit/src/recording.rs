//! Takes requests in place of a transport; gives the answers it was told to, and a record of what
//! was asked. Never opens a socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::Timestamp;
use flare_core::port::{
    Clock, Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, SystemClock,
};
use tokio::sync::Notify;

/// Requests kept unless said otherwise.
const KEPT: usize = 100_000;

/// A delivery that reaches nobody and remembers everything. Clones share everything.
///
/// Answers are looked for in this order: those queued for the URL, the one set for the URL, the
/// closure, and at last `200`.
///
/// ```
/// use std::sync::Arc;
/// use flare_core::port::{DeliveryOutcome, SystemClock};
/// use flare_testkit::RecordingDelivery;
///
/// let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()))
///     .answering(|request| DeliveryOutcome::answered(if request.body.is_empty() { 400 } else { 204 }));
/// delivery.answer("http://down.example.com/", DeliveryOutcome::answered(503));
/// delivery.hang("http://slow.example.com/");
/// assert!(delivery.requests().is_empty());
/// ```
#[derive(Clone)]
pub struct RecordingDelivery {
    clock: Arc<dyn Clock>,
    respond: Arc<dyn Fn(&DeliveryRequest) -> DeliveryOutcome + Send + Sync>,
    takes: Arc<dyn Fn(&DeliveryRequest) -> Duration + Send + Sync>,
    kept: usize,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Recorded>,
    total: u64,
    in_flight: usize,
    always: BTreeMap<String, DeliveryOutcome>,
    next: BTreeMap<String, VecDeque<DeliveryOutcome>>,
    hanging: BTreeSet<String>,
}

/// A request as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Its place among all requests, from 1.
    pub number: u64,
    /// When it was made.
    pub at: Timestamp,
    /// What was asked.
    pub request: DeliveryRequest,
}

impl Default for RecordingDelivery {
    /// Answers everything with `200`, and notes times by the system's clock.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::new()))
    }
}

impl RecordingDelivery {
    /// Answers everything with `200`, and notes times by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            respond: Arc::new(|_| DeliveryOutcome::answered(200)),
            takes: Arc::new(|_| Duration::ZERO),
            kept: KEPT,
            state: Arc::default(),
            changed: Arc::default(),
        }
    }

    /// The same, answering by a closure where nothing else is set.
    #[must_use]
    pub fn answering(
        mut self,
        respond: impl Fn(&DeliveryRequest) -> DeliveryOutcome + Send + Sync + 'static,
    ) -> Self {
        self.respond = Arc::new(respond);
        self
    }

    /// The same, each answer taking the time a closure says.
    #[must_use]
    pub fn taking(
        mut self,
        takes: impl Fn(&DeliveryRequest) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.takes = Arc::new(takes);
        self
    }

    /// The same, keeping the last `requests` only (100,000 unless set); all are counted.
    #[must_use]
    pub fn keeping(mut self, requests: usize) -> Self {
        self.kept = requests;
        self
    }

    /// Answers every request to `url` this way from now on.
    pub fn answer(&self, url: impl Into<String>, outcome: DeliveryOutcome) {
        self.lock().always.insert(url.into(), outcome);
    }

    /// Answers the next request to `url` this way; several are answered in turn.
    pub fn answer_next(&self, url: impl Into<String>, outcome: DeliveryOutcome) {
        self.lock().next.entry(url.into()).or_default().push_back(outcome);
    }

    /// Lets requests to `url` hang, until they are released or their time is over.
    pub fn hang(&self, url: impl Into<String>) {
        self.lock().hanging.insert(url.into());
    }

    /// Lets requests to `url` go on, those that hang and those to come.
    pub fn release(&self, url: &str) {
        self.lock().hanging.remove(url);
        self.changed.notify_waiters();
    }

    /// The requests made so far, oldest first, as far as they are kept.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.iter().cloned().collect()
    }

    /// How many requests were made.
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// How many requests have no answer yet.
    pub fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    /// Waits until `count` requests have been made in all; gives those that are kept.
    pub async fn wait_for(&self, count: u64) -> Vec<Recorded> {
        self.until(|state| state.total >= count).await;
        self.requests()
    }

    async fn until(&self, reached: impl Fn(&State) -> bool) {
        loop {
            // Listening starts before looking: what changes in between is not missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if reached(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn record(&self, request: &DeliveryRequest) {
        let at = self.clock.now();
        let mut state = self.lock();
        state.total += 1;
        let number = state.total;
        state.requests.push_back(Recorded { number, at, request: request.clone() });
        while state.requests.len() > self.kept {
            state.requests.pop_front();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn outcome(&self, request: &DeliveryRequest) -> DeliveryOutcome {
        let set = {
            let mut state = self.lock();
            let queued = state.next.get_mut(&request.url).and_then(VecDeque::pop_front);
            queued.or_else(|| state.always.get(&request.url).cloned())
        };
        set.unwrap_or_else(|| (self.respond)(request))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request in flight, also if it is dropped half-way.
struct Flight<'a>(&'a RecordingDelivery);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
    }
}

#[async_trait]
impl Delivery for RecordingDelivery {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let started = self.clock.monotonic();
        self.lock().in_flight += 1;
        let flight = Flight(self);
        self.record(&request);
        let released = async {
            self.until(|state| !state.hanging.contains(&request.url)).await;
            self.clock.sleep_until(self.clock.now() + (self.takes)(&request)).await;
        };
        let outcome = tokio::select! {
            biased;
            () = released => self.outcome(&request),
            () = self.clock.sleep_until(self.clock.now() + request.timeout) => {
                let message = format!("no answer within {:?}", request.timeout);
                DeliveryOutcome::failed(FailureKind::Timeout, message, true)
            }
        };
        drop(flight);
        outcome.after(self.clock.monotonic() - started)
    }
}

impl fmt::Debug for RecordingDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("RecordingDelivery")
            .field("total", &state.total)
            .field("in_flight", &state.in_flight)
            .finish_non_exhaustive()
    }
}
