//! Clients whose names no name server answers for, next to clients whose names resolve and who want
//! a new connection, and so an address, for each request.

#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::http::{Guard, HttpConfig};
use flare_core::model::{NewResource, ResourceId, SubscriptionId, SubscriptionSpec};
use flare_testkit::{Answer, HttpTarget, NameAnswer, NameServer};
use tokio::runtime::Runtime;

use super::{Error, Finding, Result, Run, Size};
use crate::measure::compare;
use crate::world::body;

pub(super) const RUN: Run = Run {
    name: "names",
    about: "600 clients on a mute name server, next to 5 whose names resolve",
    make,
};

const MUTE: usize = 600;
const HEALTHY: usize = 5;
const BODY: usize = 300;
/// Longest any of this may take.
const LIMIT: Duration = Duration::from_secs(60);

/// How much is measured, and what it must come to.
struct Plan {
    rounds: usize,
    documents: usize,
    ratio: f64,
    blocked_millis: f64,
}

fn make(size: Size) -> Result<Vec<Finding>> {
    let plan = match size {
        Size::Short => Plan { rounds: 5, documents: 60, ratio: 1.5, blocked_millis: 1_000.0 },
        Size::Full => Plan { rounds: 31, documents: 400, ratio: 1.1, blocked_millis: 100.0 },
    };
    let (disturbed, alone) = (World::new(MUTE)?, World::new(0)?);
    let blocked = disturbed.runtime.block_on(async { Blocked::watch() });
    let round = |world: &World| world.runtime.block_on(world.healthy.round(&plan));
    let compared = compare(plan.rounds, 1, |_| round(&disturbed), |_| round(&alone))?;
    let (explained, blocked) = disturbed.runtime.block_on(async {
        Ok::<_, Error>((disturbed.mute.explained().await?, blocked.longest().await?))
    })?;
    Ok(vec![
        Finding::at_most("healthy clients beside them / alone", compared.ratio, plan.ratio, "x"),
        Finding::at_most("longest wait for a blocking thread", blocked, plan.blocked_millis, "ms"),
        Finding::at_least("mute clients that say why", explained as f64, MUTE as f64, ""),
    ])
}

/// A Flare, its clients and their name server.
struct World {
    runtime: Runtime,
    healthy: NamedClients,
    mute: NamedClients,
    _names: NameServer,
    _clients: HttpTarget,
}

impl World {
    /// With so many clients beside the healthy ones, all of which have something to be told.
    fn new(mute: usize) -> Result<Self> {
        // A host with few threads for blocking calls, as a small container has.
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.max_blocking_threads(4).enable_all().build()?;
        let names = NameServer::start(|name| match name.ends_with("live.test") {
            // Good for as short as can be: they are asked for again and again.
            true => NameAnswer::At(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)], 0),
            false => NameAnswer::Silence,
        });
        let (healthy, mute, clients) = runtime.block_on(async {
            let clients = HttpTarget::start(Answer::status(204)).await;
            let port = clients.url("").rsplit(':').next().unwrap_or_default().to_owned();
            let config = HttpConfig::new()
                .guard(Guard::default().allow("127.0.0.1")?)
                .name_servers([names.address()])
                .idle_per_host(0);
            let (flare, running) = Flare::builder(MemoryBackend::new()).http(config).build()?;
            tokio::spawn(running.run(std::future::pending::<()>()));
            let live = |number| format!("http://client{number}.live.test:{port}/");
            let healthy = NamedClients::new(&flare, "items", HEALTHY, live).await?;
            let silent = |number| format!("http://client{number}.mute.test/");
            let mute = NamedClients::new(&flare, "others", mute, silent).await?;
            mute.put(1).await?;
            Ok::<_, Error>((healthy, mute, clients))
        })?;
        Ok(Self { runtime, healthy, mute, _names: names, _clients: clients })
    }
}

/// NamedClients of a resource of their own.
struct NamedClients {
    flare: Flare,
    path: &'static str,
    subscriptions: Vec<SubscriptionId>,
    revision: std::sync::atomic::AtomicI64,
}

impl NamedClients {
    async fn new(
        flare: &Flare,
        path: &'static str,
        count: usize,
        url: impl Fn(usize) -> String,
    ) -> Result<Self> {
        let endpoint = format!("http://api.example.com/{path}/{{item}}");
        let resource =
            flare.create_resource(NewResource::new(endpoint).change_field("rev")).await?;
        let resource: ResourceId = resource.id;
        let mut subscriptions = Vec::with_capacity(count);
        for number in 0..count {
            let spec = SubscriptionSpec::post(url(number));
            subscriptions.push(flare.create_subscription(resource, spec).await?.id);
        }
        Ok(Self { flare: flare.clone(), path, subscriptions, revision: 0.into() })
    }

    /// Changes so many documents.
    async fn put(&self, documents: usize) -> Result<()> {
        let content = body(self.revision.fetch_add(1, Ordering::Relaxed) + 1, BODY);
        for number in 0..documents {
            let url = format!("http://api.example.com/{}/{number}", self.path);
            self.flare.put_json(&url, content.clone()).await?;
        }
        Ok(())
    }

    /// How long it takes until all of them know of so many changes.
    async fn round(&self, plan: &Plan) -> Result<Duration> {
        let started = Instant::now();
        self.put(plan.documents).await?;
        for subscription in &self.subscriptions {
            loop {
                let report = self.flare.subscription_status(*subscription).await?;
                if report.lag == 0 && report.spreading == 0 {
                    break;
                }
                if started.elapsed() > LIMIT {
                    return Err(format!("a healthy client lacks {} changes", report.lag).into());
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        Ok(started.elapsed())
    }

    /// How many say that their name does not resolve, once all do or it takes too long.
    async fn explained(&self) -> Result<usize> {
        let started = Instant::now();
        loop {
            let mut explained = 0;
            for subscription in &self.subscriptions {
                let report = self.flare.subscription_status(*subscription).await?;
                let says = |error: &String| error.contains("does not resolve");
                explained += usize::from(report.last_error.as_ref().is_some_and(says));
            }
            if explained == self.subscriptions.len() || started.elapsed() > LIMIT {
                return Ok(explained);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Looks again and again how long a call waits for a thread for blocking calls.
struct Blocked {
    over: Arc<AtomicBool>,
    watching: tokio::task::JoinHandle<f64>,
}

impl Blocked {
    fn watch() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let watching = tokio::spawn({
            let over = Arc::clone(&over);
            async move {
                let mut longest = 0.0_f64;
                while !over.load(Ordering::Relaxed) {
                    let asked = Instant::now();
                    let waited = tokio::task::spawn_blocking(move || asked.elapsed()).await;
                    longest = longest.max(waited.unwrap_or_default().as_secs_f64() * 1e3);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                longest
            }
        });
        Self { over, watching }
    }

    /// The longest wait, in milliseconds.
    async fn longest(self) -> Result<f64> {
        self.over.store(true, Ordering::Relaxed);
        Ok(self.watching.await?)
    }
}
