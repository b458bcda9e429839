//! Many lanes on one node that have nothing to do: memory, requests, and how soon a change for one of
//! them arrives.

use std::process::Command;
use std::time::Duration;

use flare_benches::measure::{median, resident_bytes};
use flare_core::model::Placement;

use super::raw;
use super::world::World;
use crate::Result;
use crate::e2e::pause;
use crate::mongo::timed;
use crate::number::number;

/// For `sqs` itself, which measures memory in processes of their own.
pub(crate) const LANES: &str = "sqs-lanes";
/// Changes of one document, one after the other.
const TRIES: usize = 11;
const LIMIT: Duration = Duration::from_secs(300);

/// Measures in a process of its own, which prints what it found.
pub(super) fn in_process(placement: Placement, lanes: usize, idle: Duration) -> Result<()> {
    let figures = [placement.to_string(), lanes.to_string(), idle.as_secs().to_string()];
    let status = Command::new(std::env::current_exe()?).arg(LANES).args(figures).status()?;
    if status.success() { Ok(()) } else { Err(format!("{LANES} ended with {status}").into()) }
}

pub(crate) fn weigh(args: &[&str]) -> Result<()> {
    let [placement, lanes, idle] = args else { return Err(crate::USAGE.into()) };
    let placement: Placement = placement.parse()?;
    let lanes = number("lanes", Some(lanes), 2)?;
    let idle = Duration::from_secs(number("seconds", Some(idle), 1)?);
    let endpoint = super::endpoint()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let prefix = format!("bench-{}", std::process::id());
        let measured = measure(&endpoint, &prefix, placement, lanes, idle).await;
        raw::tidy_up(&endpoint, &prefix).await?;
        measured
    })
}

async fn measure(
    endpoint: &str,
    prefix: &str,
    placement: Placement,
    lanes: usize,
    idle: Duration,
) -> Result<()> {
    let without = resident_bytes()?;
    let world = World::start(endpoint, prefix, placement).await?;
    // One lane is apart from the others: what is told to it is told to nobody else.
    world.subscribe("items", lanes - 1).await?;
    world.subscribe("lone", 1).await?;
    world.put("items", [0], 1).await?;
    world.put("lone", [0], 1).await?;
    world.flare.settled(LIMIT).await?;
    let before = world.queue.requests();
    pause(idle).await;
    let requests = world.queue.requests().total() - before.total();
    let resident = resident_bytes()?;
    let mut times = Vec::with_capacity(TRIES);
    for revision in 2..2 + TRIES {
        let next = world.clients.total() + 1;
        let arrives = async {
            world.put("lone", [0], revision).await?;
            world.clients.reached(next).await
        };
        times.push(timed(arrives).await?.0.as_secs_f64());
    }
    let all = async {
        world.put("items", [0], 2).await?;
        Ok(world.flare.settled(LIMIT).await?)
    };
    let (all, ()) = timed(all).await?;
    println!(
        "{lanes} lanes, {placement}: {:.1} MiB resident ({:.1} before); idle {:.2} requests/s over {idle:?}; \
         a change for one arrives after {:.0} ms (median), for {} of them after {:.0} ms",
        mib(resident),
        mib(without),
        requests as f64 / idle.as_secs_f64(),
        median(times) * 1e3,
        lanes - 1,
        all.as_secs_f64() * 1e3,
    );
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
