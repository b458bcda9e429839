//! Takes a test's wishes; gives a Flare on memory whose time and clients do what the test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::long_leases;
use flare_backend_memory::MemoryBackend;
use flare_core::model::subscription::{RetryPolicy, SubscriptionBuilder};
use flare_core::model::{
    DocumentUrl, NewResource, Resource, Row, RowKey, Subscription, SubscriptionId,
    SubscriptionSpec, Timestamp,
};
use flare_core::pipeline::Settings;
use flare_core::port::{Clock, DeliveryOutcome, Reply, RetryAfter, RowStore};
use flare_core::{Backend, Flare};
use flare_testkit::{FarRepository, ManualClock, Recorded, RecordingDelivery};
use tokio::task::JoinHandle;

/// Turns that everything gets before time moves: more than the longest chain of wake-ups.
const TURNS: u32 = 40;

pub(crate) struct Sim {
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryBackend,
    /// What the runtime reads documents from: whatever it holds of them is counted.
    pub(crate) far: FarRepository,
    pub(crate) delivery: RecordingDelivery,
    pub(crate) flare: Flare,
    settings: Settings,
    /// What each client answers, by host; `200` unless said otherwise.
    moods: Arc<Mutex<BTreeMap<String, DeliveryOutcome>>>,
    /// How long each takes to answer, by host; no time unless said otherwise.
    paces: Arc<Mutex<BTreeMap<String, Duration>>>,
    running: Option<JoinHandle<flare_core::Result<()>>>,
    resource: Option<Resource>,
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
        let clock =
            ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)).limited(1_000_000);
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        let moods: Arc<Mutex<BTreeMap<String, DeliveryOutcome>>> = Arc::default();
        let paces: Arc<Mutex<BTreeMap<String, Duration>>> = Arc::default();
        let (known, taken) = (Arc::clone(&moods), Arc::clone(&paces));
        let delivery = RecordingDelivery::new(Arc::new(clock.clone()))
            .answering(move |request| {
                let mood = known.lock().unwrap().get(host_of(&request.url)).cloned();
                mood.unwrap_or_else(|| DeliveryOutcome::answered(200))
            })
            .taking(move |request| {
                let pace = taken.lock().unwrap().get(host_of(&request.url)).copied();
                pace.unwrap_or_default()
            });
        let far = FarRepository::new(memory.repository());
        let (flare, _) = build(&memory, &far, &clock, &delivery, &settings, 0);
        let (running, resource) = (None, None);
        let mut sim =
            Self { clock, memory, far, delivery, flare, settings, moods, paces, running, resource };
        let new = NewResource::new("http://api.example/docs/{id}").change_field("rev");
        sim.resource = Some(sim.flare.create_resource(new).await.unwrap());
        sim.restart().await;
        sim
    }

    /// The runtime dies, if there is one, and another one starts.
    pub(crate) async fn restart(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            let _ = running.await;
        }
        let Self { memory, far, clock, delivery, settings, .. } = &*self;
        let (flare, runtime) = build(memory, far, clock, delivery, settings, 1);
        self.flare = flare;
        self.running = Some(tokio::spawn(runtime.run(std::future::pending::<()>())));
        self.pass(Duration::from_millis(10)).await;
    }

    pub(crate) async fn subscribe(&self, spec: SubscriptionBuilder) -> Subscription {
        let resource = self.resource.as_ref().unwrap();
        let created = self.flare.create_subscription(resource.id, spec).await.unwrap();
        self.pass(Duration::from_millis(10)).await;
        created
    }

    pub(crate) async fn put(&self, id: u32, rev: i64) {
        self.flare.put_json(&url(id), format!("{{\"rev\":{rev}}}")).await.unwrap();
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

    /// Lets time pass, from deadline to deadline.
    pub(crate) async fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        loop {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            if self.clock.now() >= end {
                return;
            }
            let next = self.clock.next_deadline().map_or(end, |deadline| deadline.min(end));
            self.clock.advance_to(next);
        }
    }

    pub(crate) async fn row(&self, subscription: SubscriptionId, id: u32) -> Row {
        let key = RowKey::new(subscription, DocumentUrl::parse(&url(id)).unwrap());
        self.memory.repository().rows(vec![key]).await.unwrap().remove(0).unwrap()
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

impl Drop for Sim {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

pub(crate) fn url(id: u32) -> String {
    format!("http://api.example/docs/{id}")
}

/// A subscription of the client at `host`.
pub(crate) fn hook(host: &str) -> SubscriptionBuilder {
    SubscriptionSpec::post(format!("http://{host}/{{id}}/{{revision}}"))
}

/// So many retries, all after the same time.
pub(crate) fn every(seconds: u32, retries: u32) -> RetryPolicy {
    RetryPolicy::builder()
        .num_retries(retries)
        .min_delay_target(seconds)
        .max_delay_target(seconds)
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

fn build(
    memory: &MemoryBackend,
    far: &FarRepository,
    clock: &ManualClock,
    delivery: &RecordingDelivery,
    settings: &Settings,
    seed: u64,
) -> (Flare, flare_core::Runtime) {
    let mut backend = Backend::from(memory.clone());
    backend.repository = Some(Arc::new(far.clone()));
    Flare::builder(backend)
        .delivery(Arc::new(delivery.clone()))
        .clock(Arc::new(clock.clone()))
        .settings(settings.clone())
        .cluster(long_leases())
        .exclusive()
        .seed(seed)
        .build()
        .unwrap()
}
