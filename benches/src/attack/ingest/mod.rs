//! Takes MongoDB, some way away, and an origin with a thousand connections that puts as fast as it is
//! answered; gives whether the node keeps its slots, and how long its origin waits for an answer.

mod far;
mod origin;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Flare;
use flare_core::Settings;
use flare_core::cluster::{ClusterSettings, ClusterView, Health};
use flare_core::model::{Epoch, NewResource, NodeId, SubscriptionSpec};
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest};
use mongodb::Client;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use self::far::Far;
use self::origin::{Answer, put, serve_rest};
use super::{Finding, Result, Run, Size};
use crate::measure::median;
use crate::world::{FIRST, body};

/// The run.
pub(super) const RUN: Run = Run {
    name: "ingest",
    about: "connections (1,000; 400 in short) put as fast as they are answered, some way from MongoDB",
    make: run,
};

/// Where MongoDB is.
const VARIABLE: &str = "FLARE_TEST_MONGODB_URI";
/// How often the node is asked whether it is still registered.
const LOOK: Duration = Duration::from_millis(20);
/// How long a node may take to begin, and what was put to be told.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the run is made.
struct Plan {
    /// How long a byte needs to the server, and back.
    delays: &'static [u64],
    /// What the node's work is hashed onto; each is looked at when it begins.
    slots: u32,
    /// Connections that put.
    connections: usize,
    /// How long the origin puts.
    time: Duration,
    /// How long a node that died keeps its slots.
    ttl: Duration,
    /// When an origin that was refused puts again: it is asked for a second.
    again: Duration,
    /// How long a put that is accepted may take, in the median.
    accepted_within: f64,
    /// Puts that have to be accepted.
    accepted: f64,
}

impl Plan {
    fn of(size: Size) -> Self {
        let secs = Duration::from_secs;
        match size {
            // A shorter lease is lost as surely to fewer, and a machine that is busy bears no more.
            Size::Short => Self {
                delays: &[20],
                slots: 64,
                connections: 400,
                time: secs(8),
                ttl: secs(5),
                again: secs(2),
                accepted_within: 2.0,
                accepted: 30.0,
            },
            Size::Full => Self {
                delays: &[0, 5, 20, 40],
                slots: 1_024,
                connections: 1_000,
                time: secs(40),
                ttl: secs(15),
                again: Duration::from_millis(100),
                accepted_within: 1.0,
                accepted: 400.0,
            },
        }
    }
}

#[allow(clippy::print_stderr, reason = "a skip nobody notices is no test")]
fn run(size: Size) -> Result<Vec<Finding>> {
    let uri = std::env::var(VARIABLE).ok().filter(|uri| !uri.is_empty());
    let Some(uri) = uri else {
        let skipped = format!(
            "the run `ingest` needs {VARIABLE}: eval \"$(scripts/services env mongodb)\" after \
             scripts/services up mongodb"
        );
        // Nobody looks at a skip in CI, so there it is a failure.
        if std::env::var_os("CI").is_some() {
            return Err(skipped.into());
        }
        eprintln!("*** SKIPPED: {skipped}");
        return Ok(Vec::new());
    };
    let plan = Plan::of(size);
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    // The way to the store and the origin are not Flare's, and have threads of their own.
    let (inside, outside) = (runtime()?, runtime()?);
    let mut findings = Vec::new();
    for delay in plan.delays {
        findings.extend(inside.block_on(attack(&uri, &plan, *delay, outside.handle()))?);
    }
    inside.shutdown_background();
    outside.shutdown_background();
    Ok(findings)
}

/// One Flare, so far from its store.
async fn attack(uri: &str, plan: &Plan, delay: u64, outside: &Handle) -> Result<Vec<Finding>> {
    let name = format!("flare-attack-{}-{delay}", std::process::id());
    let target = uri.trim_start_matches("mongodb://").split(['/', '?']).next().unwrap_or_default();
    let far = Far::away(target.to_owned(), Duration::from_millis(delay));
    let far = outside.spawn(far).await??;
    let seen = format!("mongodb://{}/?directConnection=true", far.address());
    let config = MongoConfig::new(seen).database(&name).create_missing();
    let found = attack_on(config, plan, delay, outside).await;
    Client::with_uri_str(uri).await?.database(&name).drop().await?;
    found
}

async fn attack_on(
    config: MongoConfig,
    plan: &Plan,
    delay: u64,
    outside: &Handle,
) -> Result<Vec<Finding>> {
    let told = Arc::new(Told::default());
    let mut settings = Settings::default();
    settings.slots = Some(plan.slots);
    let mut cluster = ClusterSettings::default();
    cluster.ttl = plan.ttl;
    cluster.call_limit = plan.ttl / 5;
    let (flare, runtime) = Flare::builder(MongoBackend::connect(config).await?)
        .delivery(Arc::clone(&told) as Arc<dyn Delivery>)
        .settings(settings)
        .cluster(cluster)
        .build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(runtime.run(async { drop(stopped.await) }));
    let items = NewResource::new("http://api.example.com/items/{item}").change_field("rev");
    let resource = flare.create_resource(items).await?;
    let client = SubscriptionSpec::post("http://client.example.com/items/{item}");
    flare.create_subscription(resource.id, client).await?;
    let before = owners(&healthy(&flare).await?);
    // A node that has just begun has much to look at.
    settled(&flare).await?;

    let rest = serve_rest(&flare).await?;
    let losses = AtomicU64::new(0);
    let putting = outside.spawn(put(rest, plan.connections, plan.time, plan.again));
    let answers = tokio::select! {
        answers = putting => answers??,
        () = count_losses(&flare, &losses) => return Err("the node left its cluster".into()),
    };
    let told = told.0.load(Ordering::Relaxed);
    let after = owners(&healthy(&flare).await?);
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    // What was accepted is told in the end.
    settled(&flare).await?;
    drop(stop);
    running.await??;
    Ok(findings(plan, delay, &answers, moved, losses.into_inner(), told))
}

fn findings(
    plan: &Plan,
    delay: u64,
    answers: &[Answer],
    moved: usize,
    lost: u64,
    told: u64,
) -> Vec<Finding> {
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    let (accepted, busy) = (count(202), count(429));
    let took = |answers: Vec<&Answer>| {
        median(answers.into_iter().map(|answer| answer.took.as_secs_f64()).collect())
    };
    let taken = answers.iter().filter(|answer| answer.status == 202).collect();
    let other = answers.len() - accepted - busy;
    let at = |what: &str| format!("{delay} ms to MongoDB: {what}");
    vec![
        Finding::at_most(at("registrations lost"), lost as f64, 0.0, ""),
        Finding::at_most(at("slots that changed hands"), moved as f64, 0.0, ""),
        Finding::at_most(at("median of all puts"), took(answers.iter().collect()), 1.0, "s"),
        Finding::at_most(at("median of puts accepted"), took(taken), plan.accepted_within, "s"),
        Finding::at_most(at("answers beside 202 and 429"), other as f64, 0.0, ""),
        Finding::at_least(at("puts accepted"), accepted as f64, plan.accepted, ""),
        // Those of one document that follow each other are told as one.
        Finding::at_least(at("changes told meanwhile"), told as f64, plan.accepted / 4.0, ""),
    ]
}

/// Waits until one more document was told, and all before it.
#[allow(clippy::disallowed_methods, reason = "what is attacked here is real")]
async fn settled(flare: &Flare) -> Result<()> {
    let last = "http://api.example.com/items/last";
    let settle = async {
        // A store that is busy with what was put before is asked again.
        while flare.put_json(last, body(FIRST, 300)).await.is_err()
            || flare.settled(PATIENCE).await.is_err()
        {
            tokio::time::sleep(LOOK).await;
        }
    };
    Ok(tokio::time::timeout(PATIENCE, settle).await?)
}

/// The cluster, once all slots are somebody's.
#[allow(clippy::disallowed_methods, reason = "what is attacked here is real")]
async fn healthy(flare: &Flare) -> Result<ClusterView> {
    let look = async {
        loop {
            // One that cannot be read is not well.
            let seen = flare.cluster().await.ok().filter(|seen| seen.health == Health::Green);
            match seen {
                Some(seen) => return seen,
                None => tokio::time::sleep(LOOK).await,
            }
        }
    };
    Ok(tokio::time::timeout(PATIENCE, look).await?)
}

/// Who owns each slot, under which epoch.
fn owners(view: &ClusterView) -> Vec<Option<(NodeId, Epoch)>> {
    let slots = view.plan.iter().flat_map(|plan| &plan.slots);
    slots.map(|slot| slot.worker().map(|(node, takeover)| (node, takeover.epoch))).collect()
}

/// Counts how often the node is registered no more, or as another one; ends if it has left.
#[allow(clippy::disallowed_methods, reason = "what is attacked here is real")]
async fn count_losses(flare: &Flare, losses: &AtomicU64) {
    let member = flare.member();
    let mut last = member.node();
    loop {
        tokio::time::sleep(LOOK).await;
        let now = member.node();
        if last.is_some() && now != last {
            losses.fetch_add(1, Ordering::Relaxed);
        }
        last = now;
    }
}

/// A client that takes everything at once, and counts.
#[derive(Debug, Default)]
struct Told(AtomicU64);

#[async_trait]
impl Delivery for Told {
    async fn attempt(&self, _: DeliveryRequest) -> DeliveryOutcome {
        self.0.fetch_add(1, Ordering::Relaxed);
        DeliveryOutcome::answered(200)
    }
}
