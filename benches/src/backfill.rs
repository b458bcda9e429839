//! Takes a number of documents; puts them into a SQLite file, gives them all to a new client, and tells
//! whether memory stayed in the second half of that what it was in the first.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_sqlite::SqliteBackend;
use flare_benches::measure::resident_bytes;
use flare_benches::world::{FIRST, body, url};
use flare_core::Flare;
use flare_core::model::{NewResource, Resource, SubscriptionSpec};
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest};
use futures::{StreamExt, TryStreamExt, stream};

use crate::Result;
use crate::e2e::{now_nanos, pause};
use crate::number::number;

/// Bytes of a document.
const BODY: usize = 300;
/// Puts under way at a time, so that a commit has many of them.
const PUTTERS: usize = 256;
/// What memory may grow by in the second half, however many documents there are. In the first half the store's own
/// caches, which are bounded, fill themselves with what is read and written.
const GROWTH: u64 = 32 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(100);
const SAY_EVERY: Duration = Duration::from_secs(5);
/// How long nothing may be seen to move.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures, and prints what it sees; tells whether memory stayed bounded and everything was told once.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let mut documents = 1_000_000;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--documents" => documents = number(arg, args.next(), 1)?,
            _ => return Err(format!("backfill does not know {arg}\n\n{}", crate::USAGE).into()),
        }
    }
    let file = Directory::make()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let holds = runtime.block_on(measure(&file, documents))?;
    runtime.shutdown_background();
    Ok(holds)
}

async fn measure(file: &Directory, documents: usize) -> Result<bool> {
    let told = Arc::new(Counted::default());
    let stores = SqliteBackend::open(file.0.join("flare.db"))?;
    let (flare, runtime) = Flare::builder(stores).delivery(Arc::clone(&told) as _).build()?;
    let running = runtime.spawn();
    let new = NewResource::new("http://api.example.com/shops/{shop}/items/{item}");
    let resource = flare.create_resource(new.change_field("rev")).await?;
    let began = now_nanos();
    put(&flare, documents).await?;
    let after_puts = resident_bytes()?;
    println!("{documents} documents, put in {:.0} s", seconds_since(began));
    let began = now_nanos();
    let highest = backfill(&flare, &resource, &told, documents as u64 / 2).await?;
    println!("told in {:.0} s", seconds_since(began));
    running.drain(Duration::from_secs(10)).await?;

    let told = told.0.load(Ordering::Relaxed);
    let bounded = highest.second_half <= highest.first_half + GROWTH;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "memory: {:.0} MiB after the puts; of the backfill at most {:.0} MiB in its first half, {:.0} in its second: {}",
        mib(after_puts),
        mib(highest.first_half),
        mib(highest.second_half),
        if bounded { "bounded" } else { "NOT BOUNDED" }
    );
    let all = told == documents as u64;
    println!("the client was told {told} times: {}", if all { "each once" } else { "WRONG" });
    Ok(bounded && all)
}

async fn put(flare: &Flare, documents: usize) -> Result<()> {
    let content = body(FIRST, BODY);
    let puts = stream::iter(0..documents).map(|number| {
        let content = content.clone();
        async move {
            // A store that is busy is asked again, as an origin would.
            while let Err(error) = flare.put_json(&url(number), content.clone()).await {
                if error.kind() != flare_core::ErrorKind::Busy {
                    return Err(error);
                }
                pause(Duration::from_millis(5)).await;
            }
            Ok(())
        }
    });
    puts.buffer_unordered(PUTTERS).try_collect::<()>().await?;
    // Nobody is told of them, but they are spread all the same.
    Ok(flare.settled(PATIENCE).await?)
}

/// How many bytes the process had at most.
#[derive(Debug)]
struct Highest {
    first_half: u64,
    second_half: u64,
}

/// Gives a new client everything; tells how many bytes the process had at most until `half` of it was told, and after.
async fn backfill(
    flare: &Flare,
    resource: &Resource,
    told: &Counted,
    half: u64,
) -> Result<Highest> {
    let spec = SubscriptionSpec::post("http://client.example.com/{item}").backfill(true);
    let client = flare.create_subscription(resource.id, spec).await?.id;
    let mut highest = Highest { first_half: resident_bytes()?, second_half: 0 };
    let (mut last, mut moved_at) = (0, now_nanos());
    let mut say_at = SAY_EVERY.as_secs_f64();
    let began = now_nanos();
    loop {
        let of_half = match told.0.load(Ordering::Relaxed) < half {
            true => &mut highest.first_half,
            false => &mut highest.second_half,
        };
        *of_half = (*of_half).max(resident_bytes()?);
        let shown = flare.subscription_status(client).await?.backfill;
        if shown.as_ref().is_some_and(|shown| shown.done) {
            return Ok(highest);
        }
        let now = told.0.load(Ordering::Relaxed);
        if now > last {
            (last, moved_at) = (now, now_nanos());
        } else if seconds_since(moved_at) > PATIENCE.as_secs_f64() {
            return Err(format!("the backfill does not move: {shown:?}").into());
        }
        if seconds_since(began) >= say_at {
            println!(
                "{:>6.0} s: {now} told, {} MiB",
                seconds_since(began),
                resident_bytes()? >> 20
            );
            say_at += SAY_EVERY.as_secs_f64();
        }
        pause(LOOK_EVERY).await;
    }
}

fn seconds_since(nanos: u64) -> f64 {
    now_nanos().saturating_sub(nanos) as f64 / 1e9
}

/// A client that takes everything, and remembers how much that was.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

#[async_trait]
impl Delivery for Counted {
    async fn attempt(&self, _: DeliveryRequest) -> DeliveryOutcome {
        self.0.fetch_add(1, Ordering::Relaxed);
        DeliveryOutcome::answered(200)
    }
}

/// A directory of its own; also of a run that failed nothing is left, for it may be gigabytes.
struct Directory(PathBuf);

impl Directory {
    fn make() -> Result<Self> {
        let name = format!("flare-bench-backfill-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory)?;
        Ok(Self(directory))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
