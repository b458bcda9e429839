//! Takes requests of several nodes as clients would; gives answers after a while, and notes who sent
//! what. Panics when a node sends what is not its own, or while another request is under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::SubscriptionId;
use flare_core::port::{Clock, Delivery, DeliveryOutcome, DeliveryRequest};
use flare_testkit::ManualClock;

use super::observed::Seen;

/// All clients, as one node sees them.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    node: String,
    clock: ManualClock,
    seen: Arc<Mutex<Seen>>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How long an answer takes.
    takes: Duration,
    told: Vec<Told>,
    /// Which node has a request under way for which document of which subscription.
    in_flight: BTreeMap<(SubscriptionId, String), String>,
    broken: Vec<String>,
}

/// A request that was answered, or dropped.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) node: String,
    pub(crate) subscription: SubscriptionId,
    pub(crate) revision: i64,
}

impl Hosts {
    pub(crate) fn new(clock: ManualClock, seen: Arc<Mutex<Seen>>) -> Self {
        Self { node: String::new(), clock, seen, shared: Arc::default() }
    }

    /// The same clients, for another node.
    pub(crate) fn of(&self, node: &str) -> Self {
        Self { node: node.to_owned(), ..self.clone() }
    }

    /// How long answers take from now on.
    pub(crate) fn take(&self, time: Duration) {
        self.shared.lock().unwrap().takes = time;
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        let shared = self.shared.lock().unwrap();
        assert!(shared.broken.is_empty(), "{:#?}", shared.broken);
        shared.told.clone()
    }

    /// How many requests there were for a subscription.
    pub(crate) fn told_to(&self, subscription: SubscriptionId) -> usize {
        self.told().iter().filter(|told| told.subscription == subscription).count()
    }

    /// How many of a node's requests are under way.
    pub(crate) fn in_flight(&self, node: &str) -> usize {
        let shared = self.shared.lock().unwrap();
        shared.in_flight.values().filter(|it| *it == node).count()
    }

    /// A node is frozen: its requests have left, and it will not hear of them.
    pub(crate) fn freeze(&self, node: &str) {
        self.shared.lock().unwrap().in_flight.retain(|_, it| it != node);
    }
}

/// A request that is under way.
struct UnderWay<'a>(&'a Hosts, (SubscriptionId, String));

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut shared = self.0.shared.lock().unwrap();
        if shared.in_flight.get(&self.1) == Some(&self.0.node) {
            shared.in_flight.remove(&self.1);
        }
    }
}

#[async_trait]
impl Delivery for Hosts {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let key = (request.subscription, request.document.as_str().to_owned());
        let takes = {
            let seen = self.seen.lock().unwrap();
            let worker = seen.worker(request.subscription).map(|(name, _)| name.to_owned());
            let mut shared = self.shared.lock().unwrap();
            if worker.as_deref() != Some(&*self.node) {
                let broken = format!("P6: {} sends {key:?}, which is {worker:?}'s", self.node);
                shared.broken.push(broken);
            }
            if let Some(other) = shared.in_flight.insert(key.clone(), self.node.clone()) {
                shared.broken.push(format!("P2: {other} and {} send {key:?}", self.node));
            }
            shared.told.push(Told {
                node: self.node.clone(),
                subscription: request.subscription,
                revision: request.version.revision().get(),
            });
            shared.takes
        };
        let _under_way = UnderWay(self, key);
        self.clock.sleep_until(self.clock.now() + takes).await;
        DeliveryOutcome::answered(200)
    }
}
