//! A bulk import into a resource with 1,000 subscriptions, and single changes of another resource
//! meanwhile: how long these take until they are told, beside how long they take without it. In real
//! time, on a store in memory of which every call takes as long as one over a network.

#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::model::{NewResource, Resource, SubscriptionSpec};
use flare_core::port::{
    Clock, Delivery, DeliveryOutcome, DeliveryRequest, DocumentStore, SystemClock,
};
use flare_core::{Backend, Flare};
use flare_testkit::CountingRepository;
use tokio::sync::Notify;

use super::{Finding, Result, Run, Size};

pub(super) const RUN: Run = Run {
    name: "fairness",
    about: "single changes while 1,000 subscriptions of another resource get a bulk import",
    make,
};

const SUBSCRIPTIONS: u32 = 1_000;
/// What one call of the store takes.
const TRIP: Duration = Duration::from_millis(5);

fn make(size: Size) -> Result<Vec<Finding>> {
    let (quiet, bulk) = match size {
        Size::Short => (20, 400),
        Size::Full => (200, 2_000),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut findings = Vec::new();
    // One partition, which is spread in place, and ten of them.
    for partition_limit in [1_000, 100] {
        findings.extend(runtime.block_on(run(partition_limit, quiet, bulk))?);
    }
    Ok(findings)
}

/// A client that takes everything at once, and says so.
#[derive(Debug, Default)]
struct Client {
    told: AtomicU64,
    news: Notify,
}

#[async_trait]
impl Delivery for Client {
    async fn attempt(&self, _request: DeliveryRequest) -> DeliveryOutcome {
        self.told.fetch_add(1, Ordering::Relaxed);
        self.news.notify_one();
        DeliveryOutcome::answered(200)
    }
}

impl Client {
    async fn has_heard(&self, of: u64) {
        while self.told.load(Ordering::Relaxed) < of {
            self.news.notified().await;
        }
    }
}

async fn run(partition_limit: u32, quiet: usize, bulk: usize) -> Result<Vec<Finding>> {
    let memory = MemoryBackend::new();
    let store = CountingRepository::new(memory.repository());
    let store = store.slowed(TRIP, Arc::new(SystemClock::new()));
    let mut backend = Backend::from(memory.clone());
    backend.repository = Some(Arc::new(store));
    let client = Arc::new(Client::default());
    let mut settings = Settings::default();
    settings.partition_limit = partition_limit;
    settings.slots = Some(16);
    let (flare, runtime) = Flare::builder(backend)
        .delivery(Arc::clone(&client) as Arc<dyn Delivery>)
        .settings(settings.clone())
        .build()?;
    // On the same stores, without the network.
    let (calm, _) = Flare::builder(memory.clone()).settings(settings).build()?;
    let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
    subscribe(&calm, &resource(&calm, "bulk").await?, SUBSCRIPTIONS).await?;
    let other = resource(&calm, "other").await?;
    subscribe(&calm, &other, 100).await?;
    let hook = SubscriptionSpec::post("http://told.example.com/{id}");
    flare.create_subscription(other.id, hook).await?;

    // Once before: the tables of a store in memory grow in step, and all of them at a time.
    import(&calm, bulk, 1).await?;
    let spreading = async || memory.repository().count_undispatched(None).await;
    let grown = async {
        while spreading().await? > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<(), flare_core::Error>(())
    };
    tokio::time::timeout(Duration::from_secs(300), grown).await??;
    tell(&flare, &client).await?;
    let mut before = Vec::new();
    for _ in 0..quiet {
        before.push(tell(&flare, &client).await?);
    }
    let importing = tokio::spawn(async move { import(&calm, bulk, 2).await });
    let mut during = Vec::new();
    while !importing.is_finished() || spreading().await? > bulk as u64 / 20 {
        during.push(tell(&flare, &client).await?);
    }
    importing.await??;
    running.abort();
    let (quiet, busy) = (late(before), late(during.clone()));
    let what = |figure: &str| format!("{figure}, partitions of {partition_limit}");
    Ok(vec![
        Finding::at_least(what("changes told meanwhile"), during.len() as f64, 10.0, ""),
        Finding::at_most(what("p99 during the import / quiet"), busy / quiet, 3.0, ""),
        Finding::at_most(what("p99 during the import"), busy * 1_000.0, quiet * 3_000.0, "ms"),
    ])
}

/// Puts a version of so many documents of the resource with many subscriptions.
async fn import(flare: &Flare, documents: usize, revision: u64) -> flare_core::Result<()> {
    for number in 0..documents {
        let url = format!("http://api.example.com/bulk/{number}");
        flare.put_json(&url, format!(r#"{{"rev":{revision}}}"#)).await?;
        if number % 50 == 49 {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

async fn resource(flare: &Flare, name: &str) -> flare_core::Result<Resource> {
    let new = NewResource::new(format!("http://api.example.com/{name}/{{id}}"));
    flare.create_resource(new.change_field("rev")).await
}

/// Paused clients: rows are written, and nothing is sent, so that it is the stages that are measured.
async fn subscribe(flare: &Flare, resource: &Resource, count: u32) -> flare_core::Result<()> {
    for number in 0..count {
        let url = format!("http://{}-{number}.example.com/{{id}}", resource.id);
        let client = flare.create_subscription(resource.id, SubscriptionSpec::post(url)).await?;
        flare.pause(client.id).await?;
    }
    Ok(())
}

/// Changes a document of the other resource; gives how long it took until the client was told.
async fn tell(flare: &Flare, client: &Client) -> Result<Duration> {
    let before = client.told.load(Ordering::Relaxed);
    let url = format!("http://api.example.com/other/{before}");
    let clock = SystemClock::new();
    let began = clock.monotonic();
    flare.put_json(&url, r#"{"rev":1}"#).await?;
    tokio::time::timeout(Duration::from_secs(60), client.has_heard(before + 1)).await?;
    let took = clock.monotonic() - began;
    // So that changes come singly, and what is left of one does not meet the next.
    tokio::time::sleep(Duration::from_millis(40)).await;
    Ok(took)
}

/// The 99th of a hundred, in seconds.
fn late(mut times: Vec<Duration>) -> f64 {
    times.sort();
    let index = (times.len() * 99).div_ceil(100).clamp(1, times.len().max(1)) - 1;
    times.get(index).map_or(0.0, Duration::as_secs_f64)
}
