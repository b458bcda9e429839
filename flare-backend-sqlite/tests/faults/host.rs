//! A host in a process of its own: puts documents all the time, works its share of the lanes, and says on its
//! standard output what was accepted and who was told what. All hosts of a test write to the same pipe, a line
//! at a time, so that what they say has one order.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_sqlite::{SqliteBackend, SqliteConfig};
use flare_core::Flare;
use flare_core::cluster::ClusterSettings;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest};

use crate::world::{block_on, patient, url};

/// Documents that each host changes.
pub(crate) const DOCUMENTS: usize = 20;
/// Clients, each of which is told of all of them.
pub(crate) const CLIENTS: usize = 10;

/// One line, written at once.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Tells a client by saying so.
#[derive(Debug)]
struct Spoken;

#[async_trait]
impl Delivery for Spoken {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let client = request.url.trim_start_matches("http://client.example/");
        let document = request.document.as_str().rsplit('/').next().unwrap_or_default();
        say(&format!("told {client} {document} {}", request.version.revision().get()));
        DeliveryOutcome::answered(204)
    }
}

/// A Flare on the file, with everything that a host has.
async fn start(path: &Path, name: &str) -> (Flare, flare_core::Runtime) {
    let config = SqliteConfig::new(path).timeout(Duration::from_secs(60));
    let stores = SqliteBackend::with_config(&config).unwrap();
    let mut settings = ClusterSettings::default();
    settings.name = name.to_owned();
    // Whoever comes has work soon, so that every kill hits somebody who has.
    settings.settle_after = Duration::ZERO;
    settings.move_every = Duration::from_millis(50);
    settings.move_percent = 100;
    let builder = Flare::builder(stores).delivery(Arc::new(Spoken));
    let builder = builder.cluster(settings).settings(patient());
    let (flare, runtime) = builder.build().unwrap();
    let docs = flare.ensure_resource(NewResource::new(url("{id}")).change_field("rev"));
    let docs = docs.await.unwrap();
    for client in 0..CLIENTS {
        let spec = SubscriptionSpec::post(format!("http://client.example/{client}"));
        flare.ensure_subscription(docs.id, spec).await.unwrap();
    }
    (flare, runtime)
}

/// Makes the file and what is in it, before anybody is told of anything.
pub(crate) fn prepare(path: &Path) {
    block_on(async { start(path, "first").await.1.unused() });
}

pub(crate) fn main(path: &str, name: &str, first: i64) -> ExitCode {
    // The pause it is told to make, by its number; none while it is zero.
    let pause = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&pause);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let number = line.strip_prefix("pause ").map_or(0, |number| number.parse().unwrap());
            told.store(number, Ordering::SeqCst);
        }
        // The test that started it is gone.
        std::process::exit(0);
    });
    block_on(async {
        let (flare, runtime) = start(path.as_ref(), name).await;
        let _running = runtime.spawn();
        say(&format!("ready {name}"));
        let mut revision = first;
        loop {
            let put = |document: usize| {
                let (flare, name) = (flare.clone(), format!("{name}-{document}"));
                async move {
                    let content = format!("{{\"rev\":{revision},\"x\":\"{}\"}}", "x".repeat(500));
                    match flare.put_json(&url(&name), content).await {
                        Ok(_) => say(&format!("accepted {name} {revision}")),
                        Err(error) => say(&format!("refused {name} {revision} {error}")),
                    }
                }
            };
            futures::future::join_all((0..DOCUMENTS).map(put)).await;
            revision += 1;
            let number = pause.load(Ordering::SeqCst);
            if number > 0 {
                say(&format!("paused {name} {number}"));
                while pause.load(Ordering::SeqCst) == number {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
}
