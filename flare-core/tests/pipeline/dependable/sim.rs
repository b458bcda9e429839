//! Takes a test's wishes; gives a Flare on memory whose time and clients do what the test says.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_core::Settings;
use flare_core::model::subscription::{RetryPolicy, SubscriptionBuilder};
use flare_core::model::{Resource, Row, Subscription, SubscriptionId, SubscriptionSpec, Timestamp};
use flare_core::port::{Clock, DeliveryOutcome, Reply, RetryAfter};
use flare_testkit::{FarRepository, Recorded};

pub(crate) use crate::support::url;
use crate::support::{World, in_memory};

/// Turns that everything gets before time moves: more than the longest chain of wake-ups.
const TURNS: u32 = 40;

pub(crate) struct Sim {
    world: World,
    /// What the runtime reads documents from: whatever it holds of them is counted.
    pub(crate) far: FarRepository,
    /// What each client answers, by host; `200` unless said otherwise.
    moods: Arc<Mutex<BTreeMap<String, DeliveryOutcome>>>,
    /// How long each takes to answer, by host; no time unless said otherwise.
    paces: Arc<Mutex<BTreeMap<String, Duration>>>,
    resource: Resource,
}

impl Deref for Sim {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Sim {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

/// Settings under which idle days pass quickly.
pub(crate) fn patient() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(2);
    settings.workers = 1;
    settings.reconcile_every = Duration::from_secs(600);
    settings.rederive_every = Duration::from_secs(600);
    settings.jobs_every = Duration::from_secs(600);
    settings.sample_every = Duration::from_secs(86_400);
    settings
}

impl Sim {
    pub(crate) async fn start() -> Self {
        Self::with(patient()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let moods: Arc<Mutex<BTreeMap<String, DeliveryOutcome>>> = Arc::default();
        let paces: Arc<Mutex<BTreeMap<String, Duration>>> = Arc::default();
        let (known, taken) = (Arc::clone(&moods), Arc::clone(&paces));
        let mut far = None;
        let mut world = in_memory(settings)
            .behind(|repository, _| far.insert(FarRepository::new(repository)).clone());
        world.delivery = world
            .delivery
            .clone()
            .answering(move |request| {
                let mood = known.lock().unwrap().get(host_of(&request.url)).cloned();
                mood.unwrap_or_else(|| DeliveryOutcome::answered(200))
            })
            .taking(move |request| {
                let pace = taken.lock().unwrap().get(host_of(&request.url)).copied();
                pace.unwrap_or_default()
            });
        world.clock.give_turns(TURNS);
        let resource = world.users().await;
        let mut sim = Self { world, far: far.unwrap(), moods, paces, resource };
        sim.restart().await;
        sim
    }

    /// The runtime dies, if there is one, and another one starts.
    pub(crate) async fn restart(&mut self) {
        self.crash().await;
        self.world.start();
        self.pass(Duration::from_millis(10)).await;
    }

    pub(crate) async fn subscribe(&self, spec: SubscriptionBuilder) -> Subscription {
        let created = self.flare.create_subscription(self.resource.id, spec).await.unwrap();
        self.pass(Duration::from_millis(10)).await;
        created
    }

    pub(crate) fn client(&self, host: &str, answers: DeliveryOutcome) {
        self.moods.lock().unwrap().insert(host.to_owned(), answers);
    }

    pub(crate) fn client_is_well(&self, host: &str) {
        self.moods.lock().unwrap().remove(host);
    }

    /// Has a client take this long for every answer.
    pub(crate) fn client_takes(&self, host: &str, time: Duration) {
        self.paces.lock().unwrap().insert(host.to_owned(), time);
    }

    pub(crate) async fn row(&self, subscription: SubscriptionId, id: u32) -> Row {
        self.world.row(subscription, id).await.unwrap()
    }

    /// Requests made since `from`, as (milliseconds since then, URL).
    pub(crate) fn since(&self, from: Timestamp) -> Vec<(u128, String)> {
        let requests = self.delivery.requests().into_iter().filter(|it| it.at >= from);
        requests.map(|it: Recorded| ((it.at - from).as_millis(), it.request.url)).collect()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// A subscription of the client at `host`.
pub(crate) fn hook(host: &str) -> SubscriptionBuilder {
    SubscriptionSpec::post(format!("http://{host}/{{id}}/{{revision}}"))
}

/// So many retries, all after the same time.
pub(crate) fn every(seconds: u64, retries: u32) -> RetryPolicy {
    RetryPolicy::builder()
        .num_retries(retries)
        .min_delay_target(Duration::from_secs(seconds))
        .max_delay_target(Duration::from_secs(seconds))
        .build()
        .unwrap()
}

/// An answer that asks to be left alone.
pub(crate) fn wait(status: u16, after: RetryAfter) -> DeliveryOutcome {
    let mut outcome = DeliveryOutcome::answered(status);
    outcome.reply =
        Reply::Answered { status, retry_after: Some(after), excerpt: Default::default() };
    outcome
}

/// The host of a client's URL.
pub(crate) fn host_of(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}
