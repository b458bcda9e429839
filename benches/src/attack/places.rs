//! One client that hangs with thousands of requests, and many that take long for each: what does
//! that cost those that are well? The same Flare is measured in turns with as many clients that are
//! paused instead: what is stored for them is the same, and nothing is sent to them.

use std::time::{Duration, Instant};

use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::Settings;
use flare_core::http::{Guard, HttpConfig};
use flare_core::model::{NewResource, SubscriptionSpec};
use tokio::runtime::Runtime;

use super::clients::Clients;
use super::{Finding, Result, Run, Size};
use crate::measure::compare;
use crate::world::{FIRST, body};

/// The run.
pub(super) const RUN: Run = Run {
    name: "places",
    about: "clients that hang or take seconds for an answer cost those that are well nothing",
    make,
};

/// Clients that are well.
const WELL: usize = 4;
const BYTES: usize = 1 << 10;
/// What slow clients take for an answer.
const SLOW: Duration = Duration::from_secs(9);
/// A round that takes longer than this is not waited for.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// How the run is made.
#[derive(Clone, Copy)]
struct Attack {
    settings: fn() -> Settings,
    documents: usize,
    rounds: usize,
    /// What clients that are well may take, by what they take without the others.
    limit: f64,
}

#[derive(Clone, Copy)]
enum Others {
    /// So many that are paused.
    Paused(usize),
    /// One that never answers, with thousands of requests at a time.
    Hanging,
    /// So many that take long.
    Slow(usize),
}

fn make(size: Size) -> Result<Vec<Finding>> {
    let attack = match size {
        Size::Full => {
            Attack { settings: Settings::default, documents: 2_000, rounds: 31, limit: 1.05 }
        }
        // Fewer documents than there are places would not fill them, so there are fewer of both; and
        // a busy machine makes short rounds differ by more than what is looked for.
        Size::Short => Attack { settings: few, documents: 300, rounds: 3, limit: 1.5 },
    };
    let mut findings = Vec::new();
    let cases = [
        ("one client that hangs, 2,000 requests", Others::Hanging, 1),
        ("32 clients that take 9 s", Others::Slow(32), 32),
    ];
    for (what, others, count) in cases {
        let mut disturbed = World::new(&attack, others)?;
        let mut calm = World::new(&attack, Others::Paused(count))?;
        let compared =
            compare(attack.rounds, 1, |round| disturbed.round(round), |round| calm.round(round))?;
        let what = format!("{what}: others take");
        findings.push(Finding::at_most(what, compared.ratio, attack.limit, "x"));
    }
    Ok(findings)
}

fn few() -> Settings {
    let mut settings = Settings::default();
    (settings.in_flight_limit, settings.young_limit) = (128, 32);
    settings
}

/// A Flare and its clients.
struct World {
    runtime: Runtime,
    flare: Flare,
    clients: Clients,
    documents: usize,
}

impl World {
    fn new(attack: &Attack, others: Others) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (flare, clients) = runtime.block_on(begin((attack.settings)(), others))?;
        Ok(Self { runtime, flare, clients, documents: attack.documents })
    }

    /// How long it takes until all clients that are well have another version of all documents.
    #[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
    fn round(&mut self, round: usize) -> Result<Duration> {
        let (flare, clients) = (&self.flare, &self.clients);
        let wanted = clients.told_well() + WELL * self.documents;
        let body = body(FIRST + round as i64, BYTES);
        self.runtime.block_on(async {
            let started = Instant::now();
            let url = |number| format!("http://api.example.com/items/{number}");
            let documents = (0..self.documents).map(|number| (url(number), body.clone()));
            for answer in flare.put_documents(documents).await {
                answer?;
            }
            while clients.told_well() < wanted && started.elapsed() < GIVEN_UP {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(started.elapsed())
        })
    }
}

async fn begin(settings: Settings, others: Others) -> Result<(Flare, Clients)> {
    let clients = Clients::listen(SLOW).await?;
    let http = HttpConfig::new().guard(Guard::default().allow("127.0.0.0/8")?);
    let building = Flare::builder(MemoryBackend::new()).http(http).settings(settings);
    let (flare, runtime) = building.build()?;
    tokio::spawn(runtime.run(std::future::pending::<()>()));
    let new = NewResource::new("http://api.example.com/items/{item}").change_field("rev");
    let resource = flare.create_resource(new).await?;
    let mut specs: Vec<_> =
        (0..WELL).map(|number| SubscriptionSpec::post(clients.well(number))).collect();
    let mut paused = Vec::new();
    match others {
        Others::Paused(count) => {
            paused.extend((0..count).map(|number| SubscriptionSpec::post(clients.slow(number))));
        }
        // It hangs for as long as the run lasts.
        Others::Hanging => {
            let hanging = SubscriptionSpec::post(clients.hanging()).concurrency(2_000);
            specs.push(hanging.timeout(Duration::from_secs(600)));
        }
        Others::Slow(count) => {
            specs.extend((0..count).map(|number| SubscriptionSpec::post(clients.slow(number))));
        }
    }
    for spec in specs {
        flare.create_subscription(resource.id, spec).await?;
    }
    for spec in paused {
        let subscription = flare.create_subscription(resource.id, spec).await?;
        flare.pause(subscription.id).await?;
    }
    Ok((flare, clients))
}
