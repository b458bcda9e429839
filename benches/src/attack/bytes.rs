//! Clients that take long for each answer, and large documents: what of those is in memory?

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_backend_memory::MemoryBackend;
use flare_core::http::{Guard, HttpConfig};
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::{Backend, Flare};
use flare_testkit::FarRepository;

use super::clients::Clients;
use super::{Finding, Result, Run, Size};
use crate::measure::resident_bytes;
use crate::world::{FIRST, body};

/// The run.
pub(super) const RUN: Run = Run {
    name: "bytes",
    about: "clients that take seconds for an answer, and large documents: memory stays bounded",
    make,
};

const MIB: f64 = (1 << 20) as f64;
/// What all lanes together may hold beside a document each: [`Settings::content_limit`].
///
/// [`Settings::content_limit`]: flare_core::Settings::content_limit
const LIMIT: f64 = 16.0;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How the run is made.
#[derive(Clone, Copy)]
struct Attack {
    clients: usize,
    documents: usize,
    bytes: usize,
    /// What an answer takes.
    slow: Duration,
    lasts: Duration,
    /// What the process may have in memory, in MiB, beside what the store in it holds, which a real one
    /// holds elsewhere.
    resident: f64,
    /// Whether that is counted from what it had before: a debug build alone has much.
    beside: bool,
}

/// What was seen.
#[derive(Default)]
struct Most {
    /// Bytes of documents that were read and in memory, or on their way to a client.
    held: usize,
    resident: u64,
    waiting: usize,
    told: usize,
}

fn make(size: Size) -> Result<Vec<Finding>> {
    let seconds = Duration::from_secs;
    let large = |bytes, resident| match size {
        Size::Full => Attack {
            clients: 200,
            documents: 200,
            bytes,
            slow: seconds(9),
            lasts: seconds(30),
            resident,
            beside: false,
        },
        Size::Short => Attack {
            clients: 40,
            documents: 200,
            bytes,
            slow: seconds(2),
            lasts: seconds(4),
            resident,
            beside: true,
        },
    };
    let mut findings = Vec::new();
    for attack in [large(64 << 10, 120.0), large(1 << 20, 400.0)] {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let most = runtime.block_on(attack.make())?;
        runtime.shutdown_timeout(seconds(5));
        let kib = attack.bytes >> 10;
        let what = |what: &str| format!("{} clients, {kib} KiB: {what}", attack.clients);
        let each = (attack.clients * attack.bytes) as f64 / MIB;
        // Read, or on its way: a document may be both for a moment.
        let held = most.held as f64 / MIB;
        findings.push(Finding::at_most(what("documents held"), held, LIMIT + 2.0 * each, "MiB"));
        let resident = most.resident as f64 / MIB;
        findings.push(Finding::at_most(
            what("resident beside the store"),
            resident,
            attack.resident,
            "MiB",
        ));
        let (waiting, clients) = (most.waiting as f64, attack.clients as f64);
        findings.push(Finding::at_least(what("in flight"), waiting, clients, ""));
        findings.push(Finding::at_least(what("answered"), most.told as f64, clients, ""));
    }
    Ok(findings)
}

impl Attack {
    async fn make(&self) -> Result<Most> {
        let before = if self.beside { resident_bytes()? } else { 0 };
        let clients = Clients::listen(self.slow).await?;
        let memory = MemoryBackend::new();
        let far = FarRepository::new(memory.repository());
        let mut backend = Backend::from(memory);
        backend.repository = Some(Arc::new(far.clone()));
        let http = HttpConfig::new().guard(Guard::default().allow("127.0.0.0/8")?);
        let (flare, runtime) = Flare::builder(backend).http(http).exclusive().build()?;
        let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
        let new = NewResource::new("http://api.example.com/items/{item}").change_field("rev");
        let resource = flare.create_resource(new).await?;
        for number in 0..self.clients {
            let spec = SubscriptionSpec::post(clients.slow(number));
            flare.create_subscription(resource.id, spec).await?;
        }
        let stored = (self.documents * self.bytes) as u64;
        let body: Bytes = body(FIRST, self.bytes);
        for number in 0..self.documents {
            let url = format!("http://api.example.com/items/{number}");
            flare.put_json(&url, body.clone()).await?;
        }
        let mut most = Most::default();
        let looks = self.lasts.as_millis() / LOOK_EVERY.as_millis();
        for _ in 0..looks {
            pause(LOOK_EVERY).await;
            let waiting = clients.waiting();
            most.held = most.held.max(far.most_held() + waiting * self.bytes);
            most.resident = most.resident.max(resident_bytes()?.saturating_sub(before + stored));
            most.waiting = most.waiting.max(waiting);
        }
        most.told = clients.told_slow();
        running.abort();
        Ok(most)
    }
}

#[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
