//! Takes a number of nodes and settings; gives a world with so many, behind one store that counts what
//! is written and takes its time.

use std::ops::Deref;
use std::time::Duration;

use flare_core::Flare;
use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_core::model::{NewResource, Resource, SubscriptionSpec};
use flare_core::port::{Clock, QueueName};
use flare_testkit::CountingRepository;

use crate::support::{World, in_memory};

/// Flares that share stores.
pub(crate) struct Nodes {
    world: World,
    pub(crate) store: CountingRepository,
    pub(crate) all: Vec<Flare>,
}

impl Deref for Nodes {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Nodes {
    /// Nodes that run, on a store of which every call takes `slow`.
    pub(crate) fn new(nodes: u64, slow: Duration, settings: Settings) -> Self {
        let mut store = None;
        let mut world =
            in_memory(settings).leased(ClusterSettings::default()).behind(|repository, clock| {
                store.insert(CountingRepository::new(repository).slowed(slow, clock)).clone()
            });
        let all = (0..nodes).map(|_| world.start()).collect();
        Self { world, store: store.unwrap(), all }
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

    /// Puts a document through one of the nodes, as slow as its store is.
    pub(crate) fn put(&self, node: usize, url: String, rev: u64) -> tokio::task::JoinHandle<()> {
        let flare = self.all[node % self.all.len()].clone();
        tokio::spawn(async move {
            flare.put_json(&url, format!(r#"{{"rev":{rev}}}"#)).await.unwrap();
        })
    }

    /// Rows written since the start.
    pub(crate) fn rows(&self) -> u64 {
        let tally = self.store.tally();
        tally.of("spread_rows").items + tally.of("spread_documents").items
    }

    /// Messages of both stages, whoever has them.
    pub(crate) async fn waiting(&self) -> u64 {
        let mut all = 0;
        for queue in [QueueName::Partition, QueueName::Spread] {
            if let Ok(depth) = self.queue().depth(&queue).await {
                all += depth.ready + depth.delayed + depth.in_flight;
            }
        }
        all
    }

    /// Changes that are not spread yet.
    pub(crate) async fn spreading(&self) -> u64 {
        self.repository().count_undispatched(None).await.unwrap()
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
        self.repository().count_pending(None).await.unwrap().count
    }
}

pub(crate) fn url(name: &str, id: impl std::fmt::Display) -> String {
    format!("http://api.example/{name}/{id}")
}
