//! Takes some time; has one document change as fast as it can while one client is down, one hangs
//! and others are well, and large ones beside it of which slow clients are told; tells whether memory
//! stays flat and nobody misses the end.

use std::collections::HashMap;
use std::net::TcpListener;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_benches::attack::Clients;
use flare_benches::measure::resident_bytes;
use flare_benches::world::body;
use flare_core::Flare;
use flare_core::model::{NewResource, SubscriptionId, SubscriptionSpec, Version};
use flare_core::{Event, EventKind, EventListener};

use crate::Result;
use crate::e2e::{Receiver, http, now_nanos, pause, within};

const HEALTHY: usize = 3;
const URL: &str = "http://api.example.com/items/0";
const BODY: usize = 1024;
/// Clients that take long for every answer, and the documents they are told of.
const SLOW: usize = 50;
const SLOW_FOR: Duration = Duration::from_secs(9);
const LARGE: usize = 64 << 10;
const LARGE_DOCUMENTS: i64 = 200;
/// One of them changes each time the small one has changed so often.
const LARGE_EVERY: i64 = 50;
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What memory may grow by after the first fifth of the time.
const GROWTH: u64 = 20 << 20;
/// How long healthy clients may take to have the last version once nothing changes any more.
const CATCH_UP: Duration = Duration::from_secs(5);

/// Soaks for some seconds (300); prints what memory is used; tells whether it stayed flat.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let seconds: u64 = match args {
        [] => 300,
        ["--seconds", seconds] => seconds.parse()?,
        _ => return Err(crate::USAGE.into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let flat = runtime.block_on(soak(Duration::from_secs(seconds)))?;
    runtime.shutdown_background();
    Ok(flat)
}

async fn soak(time: Duration) -> Result<bool> {
    let mut receiver = Receiver::start(0).await?;
    receiver.expect(0, HEALTHY, 1).await?;
    let (flare, runtime) = Flare::builder(MemoryBackend::new()).http(http()?).build()?;
    let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
    let healthy = subscribe(&flare, &receiver).await?;
    let slow = Clients::listen(SLOW_FOR).await?;
    subscribe_slow(&flare, &slow).await?;

    let mut events = flare.events();
    let mut seen = Seen::default();
    let (started, mut revision, mut bound, mut highest) = (now_nanos(), 0, 0, 0);
    let elapsed = || Duration::from_nanos(now_nanos().saturating_sub(started));
    let mut look_at = Duration::ZERO;
    println!(
        "{:>8} {:>12} {:>12} {:>10} {:>10}",
        "seconds", "puts", "delivered", "failed", "RSS MiB"
    );
    while elapsed() < time {
        revision += 1;
        flare.put_json(URL, body(revision, BODY)).await?;
        if revision % LARGE_EVERY == 0 {
            let number = revision / LARGE_EVERY % LARGE_DOCUMENTS;
            let url = format!("http://api.example.com/large/{number}");
            flare.put_json(&url, body(revision, LARGE)).await?;
        }
        // An origin waits for its network now and then; so do we.
        tokio::task::yield_now().await;
        seen.take_all(&mut events);
        if elapsed() < look_at {
            continue;
        }
        let (at, resident) = (elapsed(), resident_bytes()?);
        look_at += LOOK_EVERY;
        let (delivered, failed) = (seen.delivered, seen.failed);
        let (seconds, mib) = (at.as_secs(), resident as f64 / f64::from(1 << 20));
        println!("{seconds:>8} {revision:>12} {delivered:>12} {failed:>10} {mib:>10.1}");
        if at < time / 5 {
            bound = bound.max(resident + GROWTH);
        } else {
            highest = highest.max(resident);
        }
    }
    let caught_up =
        within(CATCH_UP, seen.all_have(&mut events, &healthy, revision)).await.is_some();
    running.abort();
    let flat = highest <= bound;
    println!("memory {}", if flat { "stayed flat" } else { "GREW" });
    println!(
        "healthy clients {}",
        if caught_up { "have the last version" } else { "MISS THE END" }
    );
    println!("events missed by the listener: {}", events.missed());
    Ok(flat && caught_up)
}

/// Creates the subscriptions; gives the healthy ones.
async fn subscribe(flare: &Flare, receiver: &Receiver) -> Result<Vec<SubscriptionId>> {
    let new = NewResource::new("http://api.example.com/items/{item}").change_field("rev");
    let resource = flare.create_resource(new).await?;
    // Nobody listens where somebody just stopped listening.
    let closed = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let down = SubscriptionSpec::post(format!("http://{closed}/{{item}}"));
    flare.create_subscription(resource.id, down).await?;
    let mut ids = Vec::new();
    // The sink does not answer the one beyond those it knows.
    for number in 0..=HEALTHY {
        let url = receiver.url("{revision}", number, "{item}");
        ids.push(flare.create_subscription(resource.id, SubscriptionSpec::post(url)).await?.id);
    }
    ids.truncate(HEALTHY);
    Ok(ids)
}

/// Has slow clients told of large documents.
async fn subscribe_slow(flare: &Flare, clients: &Clients) -> Result<()> {
    let new = NewResource::new("http://api.example.com/large/{item}").change_field("rev");
    let resource = flare.create_resource(new).await?;
    for number in 0..SLOW {
        let spec = SubscriptionSpec::post(clients.slow(number));
        flare.create_subscription(resource.id, spec).await?;
    }
    Ok(())
}

/// What became of notifications, by Flare's own events.
#[derive(Default)]
struct Seen {
    delivered: u64,
    failed: u64,
    newest: HashMap<SubscriptionId, Version>,
}

impl Seen {
    fn take(&mut self, event: Event) {
        match event.kind {
            EventKind::Delivered(told) => {
                self.delivered += 1;
                self.newest.insert(event.subscription, told.version);
            }
            _ => self.failed += 1,
        }
    }

    fn take_all(&mut self, events: &mut EventListener) {
        while let Some(event) = events.try_next() {
            self.take(event);
        }
    }

    /// Waits until all of them have a revision.
    async fn all_have(&mut self, events: &mut EventListener, who: &[SubscriptionId], last: i64) {
        let has = |newest: &HashMap<SubscriptionId, Version>, id| {
            newest.get(id).is_some_and(|version: &Version| version.revision().get() == last)
        };
        while !who.iter().all(|id| has(&self.newest, id)) {
            match events.next().await {
                Some(event) => self.take(event),
                // Nobody is left to tell: the time will run out.
                None => pause(CATCH_UP * 2).await,
            }
        }
    }
}
