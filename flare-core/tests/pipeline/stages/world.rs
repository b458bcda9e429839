//! Takes a number of nodes and settings; gives whole Flares on the same memory, behind one store
//! that counts what is written and takes its time.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::model::{NewResource, Resource, SubscriptionSpec, Timestamp};
use flare_core::pipeline::Settings;
use flare_core::port::{Clock, DocumentStore, Queue, QueueName, RowStore};
use flare_core::{Backend, Flare};
use flare_testkit::{CountingRepository, ManualClock, RecordingDelivery};

/// Flares that share stores.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryBackend,
    pub(crate) store: CountingRepository,
    pub(crate) nodes: Vec<Flare>,
    pub(crate) delivery: RecordingDelivery,
    /// On the same stores, for which nothing is slow.
    pub(crate) calm: Flare,
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl World {
    /// Nodes that run, on a store of which every call takes `slow`.
    pub(crate) fn new(nodes: u64, slow: Duration, settings: &Settings) -> Self {
        let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        let store = CountingRepository::new(memory.repository());
        let store = store.slowed(slow, Arc::new(clock.clone()));
        let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
        let build = |backend: Backend, seed| {
            Flare::builder(backend)
                .delivery(Arc::new(delivery.clone()))
                .clock(Arc::new(clock.clone()))
                .settings(settings.clone())
                .seed(seed)
                .build()
                .unwrap()
        };
        let (calm, _) = build(Backend::from(memory.clone()), u64::MAX);
        let start = |seed| {
            let mut backend = Backend::from(memory.clone());
            backend.repository = Some(Arc::new(store.clone()));
            let (flare, runtime) = build(backend, seed);
            tokio::spawn(runtime.run(std::future::pending::<()>()));
            flare
        };
        let nodes = (0..nodes).map(start).collect();
        Self { clock, memory, store, nodes, delivery, calm }
    }

    /// A resource with subscriptions that are paused: rows are written, and nothing is sent.
    pub(crate) async fn resource(&self, name: &str, subscriptions: u32) -> Resource {
        let new = NewResource::new(url(name, "{id}")).change_field("rev");
        let resource = self.calm.create_resource(new).await.unwrap();
        for number in 0..subscriptions {
            let hook = SubscriptionSpec::post(format!("http://{name}{number}.example/{{id}}"));
            let made = self.calm.create_subscription(resource.id, hook).await.unwrap();
            self.calm.pause(made.id).await.unwrap();
        }
        resource
    }

    /// One that is told at once.
    pub(crate) async fn subscribe(&self, resource: &Resource) {
        let hook = SubscriptionSpec::post("http://told.example/{id}");
        self.calm.create_subscription(resource.id, hook).await.unwrap();
    }

    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }

    /// Puts a document through one of the nodes, as slow as its store is.
    pub(crate) fn put(&self, node: usize, url: String, rev: u64) -> tokio::task::JoinHandle<()> {
        let flare = self.nodes[node % self.nodes.len()].clone();
        tokio::spawn(async move {
            flare.put_json(&url, format!(r#"{{"rev":{rev}}}"#)).await.unwrap();
        })
    }

    /// Rows written since the start.
    pub(crate) fn rows(&self) -> u64 {
        self.store.tally().of("spread_rows").items
    }

    /// Messages of both stages, whoever has them.
    pub(crate) async fn waiting(&self) -> u64 {
        let mut all = 0;
        for queue in [QueueName::Partition, QueueName::Spread] {
            if let Ok(depth) = self.memory.queue().depth(&queue).await {
                all += depth.ready + depth.delayed + depth.in_flight;
            }
        }
        all
    }

    /// Changes that are not spread yet.
    pub(crate) async fn spreading(&self) -> u64 {
        self.memory.repository().count_undispatched(None).await.unwrap()
    }

    /// Lets time pass until all changes are spread; tells how long that took.
    pub(crate) async fn spread(&self, most: Duration) -> Duration {
        let began = self.clock.now();
        while self.spreading().await > 0 {
            assert!(self.clock.now() - began < most, "not spread within {most:?}");
            self.pass(Duration::from_millis(100)).await;
        }
        self.clock.now() - began
    }

    /// Rows that wait to be sent.
    pub(crate) async fn pending(&self) -> u64 {
        self.memory.repository().count_pending(None).await.unwrap().count
    }
}

pub(crate) fn url(name: &str, id: impl std::fmt::Display) -> String {
    format!("http://api.example/{name}/{id}")
}
