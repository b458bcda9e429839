//! Takes a script of slots; gives a runtime that follows it, with a client in every slot.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::model::{
    DocumentUrl, Epoch, NewResource, Resource, RowKey, Subscription, SubscriptionId,
    SubscriptionSpec, Timestamp,
};
use flare_core::pipeline::Settings;
use flare_core::port::{Clock, RowStore};
use flare_core::{Flare, Script};
use flare_testkit::{ManualClock, RecordingDelivery};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Turns that everything gets before time moves.
const TURNS: u32 = 60;
pub(crate) const SLOTS: u32 = 4;

pub(crate) struct Node {
    pub(crate) clock: ManualClock,
    pub(crate) memory: MemoryBackend,
    pub(crate) delivery: RecordingDelivery,
    pub(crate) flare: Flare,
    /// A client in each slot, at the host `client-<slot>`.
    pub(crate) clients: Vec<Subscription>,
    resource: Resource,
    script: mpsc::Sender<Script>,
    running: JoinHandle<flare_core::Result<()>>,
}

pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(SLOTS);
    settings.workers = 1;
    settings.drain_limit = Duration::from_secs(30);
    settings.timeout = Duration::from_secs(3_600);
    settings
}

impl Node {
    pub(crate) async fn start(settings: Settings) -> Self {
        let clock =
            ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)).limited(1_000_000);
        let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
        let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
        let (flare, runtime) = Flare::builder(memory.clone())
            .delivery(Arc::new(delivery.clone()))
            .clock(Arc::new(clock.clone()))
            .settings(settings)
            .seed(7)
            .build()
            .unwrap();
        let new = NewResource::new("http://api.example/docs/{id}").change_field("rev");
        let resource = flare.create_resource(new).await.unwrap();
        let (script, steps) = mpsc::channel(16);
        let running = tokio::spawn(runtime.run_scripted(steps, std::future::pending()));
        let clients = Vec::new();
        let mut node = Self { clock, memory, delivery, flare, clients, resource, script, running };
        for slot in 0..SLOTS {
            let client = node.subscribe_in(slot, &format!("client-{slot}")).await;
            node.clients.push(client);
        }
        node
    }

    /// A subscription whose lanes belong to `slot`: tried until one falls there.
    pub(crate) async fn subscribe_in(&self, slot: u32, host: &str) -> Subscription {
        loop {
            let spec = SubscriptionSpec::post(format!("http://{host}/{{id}}/{{revision}}"));
            let created = self.flare.create_subscription(self.resource.id, spec).await.unwrap();
            if slot_of(created.id) == slot {
                return created;
            }
            self.flare.delete_subscription(created.id).await.unwrap();
        }
    }

    pub(crate) async fn grant(&self, slots: impl IntoIterator<Item = u32>) {
        self.script.send(Script::Grant(slots.into_iter().collect())).await.unwrap();
        self.turns().await;
    }

    pub(crate) async fn release(
        &self,
        slots: impl IntoIterator<Item = u32>,
    ) -> oneshot::Receiver<()> {
        let (done, released) = oneshot::channel();
        self.script.send(Script::Release(slots.into_iter().collect(), done)).await.unwrap();
        self.turns().await;
        released
    }

    pub(crate) async fn lose(&self, slots: impl IntoIterator<Item = u32>) {
        self.script.send(Script::Lose(slots.into_iter().collect())).await.unwrap();
        self.turns().await;
    }

    pub(crate) async fn put(&self, id: u32, rev: i64) {
        self.flare.put_json(&url(id), format!("{{\"rev\":{rev}}}")).await.unwrap();
        self.turns().await;
    }

    /// How often a URL was called.
    pub(crate) fn told(&self, url: &str) -> usize {
        self.delivery.requests().iter().filter(|it| it.request.url == url).count()
    }

    /// The epoch of the last owner of a client's row.
    pub(crate) async fn epoch(&self, subscription: SubscriptionId, id: u32) -> Epoch {
        let key = RowKey::new(subscription, DocumentUrl::parse(&url(id)).unwrap());
        let rows = self.memory.repository().rows(vec![key]).await.unwrap();
        rows.into_iter().flatten().next().unwrap().epoch
    }

    pub(crate) async fn turns(&self) {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass, from deadline to deadline.
    pub(crate) async fn pass(&self, time: Duration) {
        let end = self.clock.now() + time;
        loop {
            self.turns().await;
            if self.clock.now() >= end {
                return;
            }
            let next = self.clock.next_deadline().map_or(end, |deadline| deadline.min(end));
            self.clock.advance_to(next);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn url(id: u32) -> String {
    format!("http://api.example/docs/{id}")
}

/// The slot that a subscription's lanes are hashed onto: all nodes have to agree on it for ever.
pub(crate) fn slot_of(id: SubscriptionId) -> u32 {
    let bytes = id.as_bytes();
    u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) % SLOTS
}
