//! Takes subscriptions, documents and a store; measures the whole way from put to client over real HTTP,
//! next to the same requests made without Flare, in turns.

mod at_load;
mod fill;
mod head;
mod large;
mod options;
mod pace;
mod raw;
mod receiver;
mod report;
mod rest;
mod round;
mod sink;
mod stores;
mod with_flare;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use at_load::AtLoad;
use flare_benches::measure::median;
use large::Large;
use options::Options;
use raw::{CONNECTIONS, Raw};
pub(crate) use receiver::Receiver;
use report::Report;
pub(crate) use sink::{SINK, serve};
pub(crate) use stores::{MeasuredStore, StoreKind, postgresql_server};
use with_flare::Running;
pub(crate) use with_flare::http;

use crate::Result;

/// Bytes of a document.
const BODY: usize = 300;

/// Measures and prints the figures; tells whether they are as good as claimed.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let options = Options::parse(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(measure(&options))?;
    runtime.shutdown_background();
    println!("{report}");
    if options.json {
        println!("{}", report.to_json());
    }
    Ok(report.holds())
}

async fn measure(options: &Options) -> Result<Report> {
    let mut receiver = Receiver::start(options.fail).await?;
    let single = options.single();
    let raw = Raw::new(&single, &receiver).await?;
    let mut flare = Running::new(&single, &receiver, None).await?;
    // With many notifications in a request, the same as with one in each.
    let mut batched = match options.batch {
        None => None,
        Some(_) => Some(Running::new(options, &receiver, None).await?),
    };
    // The same once more without what is to be compared: clients that hang or fail, or very many documents.
    let mut plain = match single.plain() {
        None => None,
        Some(plain) => Some(Running::new(&plain, &receiver, None).await?),
    };

    // Connections are made and caches filled before anything counts.
    flare.round(&mut receiver).await?;
    if let Some(plain) = &mut plain {
        plain.round(&mut receiver).await?;
    }
    if let Some(batched) = &mut batched {
        batched.round(&mut receiver).await?;
    }
    let connections = best_connections(&raw, &mut receiver).await?;

    let mut report = Report::new(options, connections);
    for pair in 0..options.pairs {
        // Each side goes first every other time; what is compared follows each other.
        if pair % 2 == 0 {
            report.raw.push(raw.round(connections, &mut receiver).await?);
            report.flare.push(flare.round(&mut receiver).await?);
        }
        if let Some(plain) = &mut plain {
            report.plain.push(plain.round(&mut receiver).await?);
        }
        if let Some(batched) = &mut batched {
            report.batched.push(batched.round(&mut receiver).await?);
        }
        if pair % 2 == 1 {
            report.flare.push(flare.round(&mut receiver).await?);
            report.raw.push(raw.round(connections, &mut receiver).await?);
        }
    }
    if options.is_paced() {
        let most = report.deliveries_per_second();
        report.at_load = Some(AtLoad::measure(&single, most, &mut flare, &mut receiver).await?);
    }
    report.weights = flare.store().weights().await?;
    if let Some(plain) = plain {
        plain.end().await?;
    }
    if let Some(batched) = batched {
        batched.end().await?;
    }
    match options.is_large() {
        true => report.large = Some(Large::measure(&single, flare, &mut receiver).await?),
        false => flare.end().await?,
    }
    Ok(report)
}

/// How many connections are fastest without Flare.
async fn best_connections(raw: &Raw, receiver: &mut Receiver) -> Result<usize> {
    // The first turn makes connections, the others count.
    const TURNS: usize = 3;
    let mut speeds = [(); CONNECTIONS.len()].map(|()| Vec::new());
    for turn in 0..TURNS {
        for (connections, speeds) in CONNECTIONS.into_iter().zip(&mut speeds) {
            let round = raw.round(connections, receiver).await?;
            if turn > 0 {
                speeds.push(round.per_second);
            }
        }
    }
    let medians = speeds.map(median).into_iter().zip(CONNECTIONS);
    let best = medians.max_by(|one, other| one.0.total_cmp(&other.0));
    Ok(best.map_or(CONNECTIONS[0], |(_, connections)| connections))
}

/// The time, comparable between processes.
#[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
pub(crate) fn now_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// What comes within a time, if it does.
#[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
pub(crate) async fn within<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(time, work).await.ok()
}
