//! A whole Flare on one thread: memory behind a manual clock, a transport that records, and a
//! runtime that can be dropped and started again.

#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "helpers of several tests")]

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::cluster::ClusterSettings;
use flare_core::model::subscription::{RetryPolicy, SubscriptionBuilder};
use flare_core::model::{
    DocumentChange, DocumentUrl, Job, JobKind, NewResource, Resource, Row, RowKey, Subscription,
    SubscriptionId, SubscriptionSpec, Timestamp,
};
use flare_core::pipeline::Settings;
use flare_core::port::{
    Clock, DocumentStore, JobStore, Queue, Repository, RowStore, SubscriptionStore,
};
use flare_core::{Backend, Flare};
use flare_testkit::{ManualClock, RecordingDelivery};
use futures::TryStreamExt;
use tokio::task::JoinHandle;

/// A Flare, and all that is behind it.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryBackend,
    pub(crate) backend: Backend,
    pub(crate) delivery: RecordingDelivery,
    pub(crate) settings: Settings,
    pub(crate) cluster: ClusterSettings,
    pub(crate) flare: Flare,
    /// Another one on the same stores, for which nothing fails.
    pub(crate) calm: Flare,
    running: Option<JoinHandle<flare_core::Result<()>>>,
    starts: u64,
}

impl World {
    /// A Flare whose runtime does not run yet.
    pub(crate) fn new(settings: Settings) -> Self {
        Self::leased(settings, long_leases())
    }

    /// The same, with leases that are prolonged as often as these settings say.
    pub(crate) fn leased(settings: Settings, cluster: ClusterSettings) -> Self {
        let clock =
            ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)).limited(1_000_000);
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
        let backend = Backend::from(memory.clone());
        let built = |seed| build(&backend, &delivery, &clock, (&settings, &cluster), seed).0;
        let (flare, calm) = (built(0), built(u64::MAX));
        let (running, starts) = (None, 0);
        Self { clock, memory, backend, delivery, settings, cluster, flare, calm, running, starts }
    }

    /// The same, with something before the repository.
    pub(crate) fn behind(
        settings: Settings,
        wrap: impl FnOnce(Arc<dyn Repository>, &ManualClock) -> Arc<dyn Repository>,
    ) -> Self {
        let mut world = Self::new(settings);
        world.backend.repository = Some(wrap(world.memory.repository(), &world.clock));
        let World { backend, delivery, clock, settings, cluster, .. } = &world;
        world.flare = build(backend, delivery, clock, (settings, cluster), 0).0;
        world
    }

    /// Starts a runtime, beside those that run.
    pub(crate) fn start(&mut self) {
        self.starts += 1;
        let World { backend, delivery, clock, settings, cluster, starts, .. } = &*self;
        let (flare, runtime) = build(backend, delivery, clock, (settings, cluster), *starts);
        self.flare = flare;
        self.running = Some(tokio::spawn(runtime.run(std::future::pending::<()>())));
    }

    /// Drops the runtime, wherever it is.
    pub(crate) async fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            let _ = running.await;
        }
    }

    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }

    /// Lets time pass until something is so.
    pub(crate) async fn until(&self, what: &str, so: impl AsyncFn() -> bool) {
        let end = self.clock.now() + Duration::from_secs(3_600);
        while !so().await {
            assert!(self.clock.now() < end, "not within an hour: {what}");
            self.pass(Duration::from_millis(100)).await;
        }
    }

    /// Lets time pass until every change is spread and nothing is pending.
    pub(crate) async fn settled(&self) {
        let store = self.memory.repository();
        self.until("settled", async || {
            store.count_undispatched(None).await.unwrap() == 0
                && store.count_pending(None).await.unwrap().count == 0
        })
        .await;
    }

    /// Lets as much time pass as something takes.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.clock.advance(Duration::from_millis(10)) => {}
            }
        }
    }

    /// The queue the runtime uses.
    pub(crate) fn queue(&self) -> Arc<dyn Queue> {
        self.backend.queue.clone().unwrap()
    }

    pub(crate) async fn users(&self) -> Resource {
        let new = NewResource::new("http://api.example/users/{id}").change_field("rev");
        self.calm.create_resource(new).await.unwrap()
    }

    pub(crate) async fn subscribe(&self, resource: &Resource, name: &str) -> Subscription {
        self.calm.create_subscription(resource.id, hook(name)).await.unwrap()
    }

    pub(crate) async fn put(&self, id: impl std::fmt::Display, rev: i64) -> DocumentChange {
        self.flare.put_json(&url(id), format!(r#"{{"rev":{rev}}}"#)).await.unwrap()
    }

    pub(crate) async fn delete(&self, id: impl std::fmt::Display) -> DocumentChange {
        self.flare.delete_document(&url(id)).await.unwrap()
    }

    /// The row of a subscription for a document.
    pub(crate) async fn row(
        &self,
        subscription: SubscriptionId,
        id: impl std::fmt::Display,
    ) -> Option<Row> {
        let key = RowKey::new(subscription, DocumentUrl::parse(&url(id)).unwrap());
        self.memory.repository().rows(vec![key]).await.unwrap().pop().unwrap()
    }

    /// The subscription, in whatever state it is.
    pub(crate) async fn stored(&self, id: SubscriptionId) -> Option<Subscription> {
        self.memory.repository().subscription(id).await.unwrap()
    }

    /// All stored jobs that come to an end.
    pub(crate) async fn removals(&self) -> Vec<Job> {
        let store = self.memory.repository();
        let jobs: Vec<Job> = store.due_jobs(Timestamp::MAX, 1_000).try_collect().await.unwrap();
        let ends = |job: &Job| !matches!(job.kind, JobKind::Expire | JobKind::Reconcile);
        jobs.into_iter().filter(ends).collect()
    }
}

fn build(
    backend: &Backend,
    delivery: &RecordingDelivery,
    clock: &ManualClock,
    (settings, cluster): (&Settings, &ClusterSettings),
    seed: u64,
) -> (Flare, flare_core::Runtime) {
    Flare::builder(backend.clone())
        .delivery(Arc::new(delivery.clone()))
        .clock(Arc::new(clock.clone()))
        .settings(settings.clone())
        .cluster(cluster.clone())
        .seed(seed)
        .build()
        .unwrap()
}

/// A node that says so seldom that it is there, and gives a store that hangs much time.
pub(crate) fn long_leases() -> ClusterSettings {
    let mut cluster = ClusterSettings::default();
    cluster.ttl = Duration::from_secs(1_200);
    cluster.call_limit = cluster.ttl / 4;
    cluster.hand_over_limit = cluster.ttl;
    cluster.sweep_every = cluster.ttl;
    cluster.publish_every = cluster.ttl;
    cluster
}

pub(crate) fn few_slots() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(2);
    settings.workers = 1;
    settings
}

pub(crate) fn url(id: impl std::fmt::Display) -> String {
    format!("http://api.example/users/{id}")
}

/// A client that is given up on after one attempt.
pub(crate) fn hook(name: &str) -> SubscriptionBuilder {
    let never = RetryPolicy::builder().num_retries(0).build().unwrap();
    SubscriptionSpec::post(format!("http://{name}.example/{{id}}")).retry(never)
}
