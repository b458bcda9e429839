//! A Flare whose queue is on SQS and whose other stores are in memory, with clients that accept
//! everything at once and are counted.

use std::sync::Arc;

use async_trait::async_trait;
use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::{NewResource, Placement, SubscriptionSpec};
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest, SystemClock};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Result;

/// Subscriptions created at a time.
const AT_A_TIME: usize = 16;

pub(super) struct World {
    pub(super) flare: Flare,
    pub(super) queue: Arc<SqsQueue>,
    pub(super) clients: Arc<Clients>,
    running: JoinHandle<flare_core::Result<()>>,
}

impl World {
    pub(super) async fn start(endpoint: &str, prefix: &str, placement: Placement) -> Result<Self> {
        let config = SqsConfig::new().endpoint(endpoint).region("us-east-1").prefix(prefix);
        let queue = Arc::new(SqsQueue::connect(config.credentials("bench", "bench")).await?);
        let clients = Arc::new(Clients::default());
        let mut settings = Settings::default();
        settings.placement = placement;
        let memory = MemoryConfig::default().max_bytes(u64::MAX);
        let memory = MemoryBackend::with_config(memory, Arc::new(SystemClock::new()));
        let (flare, runtime) = Flare::builder(memory)
            .queue(Arc::clone(&queue) as Arc<_>)
            .delivery(Arc::clone(&clients) as Arc<_>)
            .settings(settings)
            .build()?;
        let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
        Ok(Self { flare, queue, clients, running })
    }

    /// A resource, and so many subscriptions to it.
    pub(super) async fn subscribe(&self, kind: &str, subscriptions: usize) -> Result<()> {
        let new = NewResource::new(format!("http://api.example.com/{kind}/{{id}}"));
        let resource = self.flare.create_resource(new.change_field("rev")).await?;
        let created = stream::iter(0..subscriptions).map(|number| {
            let spec = SubscriptionSpec::post(format!("http://client-{number}.example.com/{kind}"));
            self.flare.create_subscription(resource.id, spec)
        });
        created.buffer_unordered(AT_A_TIME).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// Puts documents at once.
    pub(super) async fn put(
        &self,
        kind: &str,
        ids: impl IntoIterator<Item = usize>,
        revision: usize,
    ) -> Result<()> {
        let put = |id: usize| {
            let body = format!(r#"{{"rev":{revision},"pad":"{}"}}"#, "x".repeat(180));
            (format!("http://api.example.com/{kind}/{id}"), body)
        };
        for answer in self.flare.put_documents(ids.into_iter().map(put)).await {
            answer?;
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Clients that accept everything at once.
#[derive(Debug, Default)]
pub(super) struct Clients {
    total: watch::Sender<u64>,
}

impl Clients {
    pub(super) fn total(&self) -> u64 {
        *self.total.borrow()
    }

    /// Waits until so many requests have been made.
    pub(super) async fn reached(&self, total: u64) -> Result<()> {
        self.total.subscribe().wait_for(|it| *it >= total).await?;
        Ok(())
    }
}

#[async_trait]
impl Delivery for Clients {
    async fn attempt(&self, _: DeliveryRequest) -> DeliveryOutcome {
        self.total.send_modify(|total| *total += 1);
        DeliveryOutcome::answered(200)
    }
}
