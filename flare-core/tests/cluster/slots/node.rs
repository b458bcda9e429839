//! Takes a script of slots; gives a runtime that follows it, with a client in every slot.

use std::ops::Deref;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::internals::Script;
use flare_core::model::{Epoch, Resource, Subscription, SubscriptionId, SubscriptionSpec};
use flare_testkit::World;
use tokio::sync::{mpsc, oneshot};

/// Turns that everything gets before time moves.
const TURNS: u32 = 60;
pub(crate) const SLOTS: u32 = 4;

pub(crate) struct Node {
    world: World<MemoryBackend>,
    /// A client in each slot, at the host `client-<slot>`.
    pub(crate) clients: Vec<Subscription>,
    resource: Resource,
    script: mpsc::Sender<Script>,
}

impl Deref for Node {
    type Target = World<MemoryBackend>;

    fn deref(&self) -> &Self::Target {
        &self.world
    }
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
        let mut world = World::on(MemoryBackend::with_clock, settings);
        world.clock.give_turns(TURNS);
        let resource = world.users().await;
        let (script, steps) = mpsc::channel(16);
        world.start_by(world.builder(), |runtime, stopped| runtime.run_scripted(steps, stopped));
        let mut node = Self { world, clients: Vec::new(), resource, script };
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
        self.world.put(id, rev).await;
        self.turns().await;
    }

    /// How often a URL was called.
    pub(crate) fn told(&self, url: &str) -> usize {
        self.delivery.requests().iter().filter(|it| it.request.url == url).count()
    }

    /// The epoch of the last owner of a client's row.
    pub(crate) async fn epoch(&self, subscription: SubscriptionId, id: u32) -> Epoch {
        self.row(subscription, id).await.unwrap().epoch
    }

    pub(crate) async fn turns(&self) {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }
}

/// The slot that a subscription's lanes are hashed onto: all nodes have to agree on it for ever.
pub(crate) fn slot_of(id: SubscriptionId) -> u32 {
    let bytes = id.as_bytes();
    u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) % SLOTS
}
