//! Takes subscriptions and documents; measures the whole way from put to client over real HTTP,
//! next to the same requests made without Flare, in turns.

mod head;
mod options;
mod raw;
mod receiver;
mod report;
mod rest;
mod round;
mod sink;
mod with_flare;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flare_benches::measure::median;
use options::Options;
use raw::{CONNECTIONS, Raw};
pub(crate) use receiver::Receiver;
use report::Report;
pub(crate) use sink::{SINK, serve};
use with_flare::Running;
pub(crate) use with_flare::http;

use crate::Result;

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
    let raw = Raw::new(options, &receiver).await?;
    let mut flare = Running::new(&options.single(), &receiver, None).await?;
    // With many notifications in a request, the same as with one in each.
    let mut batched = match options.batch {
        None => None,
        Some(_) => Some(Running::new(options, &receiver, None).await?),
    };
    // With clients that hang or fail, the same once more as if they were not there.
    let mut undisturbed = match options.is_disturbed() {
        false => None,
        true => Some(Running::new(&options.undisturbed().single(), &receiver, None).await?),
    };

    // Connections are made and caches filled before anything counts.
    flare.round(&mut receiver).await?;
    if let Some(undisturbed) = &mut undisturbed {
        undisturbed.round(&mut receiver).await?;
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
        if let Some(undisturbed) = &mut undisturbed {
            report.undisturbed.push(undisturbed.round(&mut receiver).await?);
        }
        if let Some(batched) = &mut batched {
            report.batched.push(batched.round(&mut receiver).await?);
        }
        if pair % 2 == 1 {
            report.flare.push(flare.round(&mut receiver).await?);
            report.raw.push(raw.round(connections, &mut receiver).await?);
        }
    }
    flare.end().await;
    if let Some(batched) = batched {
        batched.end().await;
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
