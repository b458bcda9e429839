//! The whole way: documents put in full batches, each told to so many clients, until everything is
//! settled; in turns with bare messages to the same server.

use std::time::Duration;

use flare_backend_sqs::SqsRequests;
use flare_benches::measure::median;
use flare_core::model::Placement;
use futures::{StreamExt, TryStreamExt, stream};

use super::raw::{self, Raw};
use super::world::World;
use crate::Result;
use crate::mongo::timed;

/// Documents that change in a round.
pub(super) const DOCUMENTS: usize = 1_000;
/// Documents per put.
pub(super) const BATCH: usize = 100;
/// Puts under way at a time.
const PUTS: usize = 4;
const LIMIT: Duration = Duration::from_secs(300);

pub(super) struct Whole {
    /// Bare messages a second.
    pub(super) raw: f64,
    /// Deliveries a second.
    pub(super) rate: f64,
    /// The second by the first, of the same round.
    pub(super) share: f64,
    pub(super) per_delivery: f64,
    pub(super) requests: SqsRequests,
}

/// The medians of some rounds.
pub(super) async fn measure(endpoint: &str, subscriptions: usize, rounds: usize) -> Result<Whole> {
    let prefix = format!("bench-{}-s{subscriptions}", std::process::id());
    let measured = rounds_of(endpoint, &prefix, subscriptions, rounds).await;
    raw::tidy_up(endpoint, &prefix).await?;
    measured
}

async fn rounds_of(
    endpoint: &str,
    prefix: &str,
    subscriptions: usize,
    rounds: usize,
) -> Result<Whole> {
    let raw = Raw::new(endpoint, prefix).await?;
    let world = World::start(endpoint, prefix, Placement::Shared).await?;
    world.subscribe("items", subscriptions).await?;
    // The first round makes the rows, and connections.
    deliver(&world, 1).await?;
    raw.round().await?;
    let (before, told) = (world.queue.requests(), world.clients.total());
    let (mut bare, mut rates, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let messages = raw.round().await?;
        let (time, ()) = timed(deliver(&world, round + 2)).await?;
        let deliveries = (DOCUMENTS * subscriptions) as f64 / time.as_secs_f64();
        bare.push(messages);
        rates.push(deliveries);
        shares.push(deliveries / messages);
    }
    let now = world.queue.requests();
    let mut requests = now;
    requests.send -= before.send;
    requests.receive -= before.receive;
    requests.delete -= before.delete;
    requests.change -= before.change;
    requests.other -= before.other;
    let told = (world.clients.total() - told) as f64;
    let per_delivery = requests.total() as f64 / told;
    let (raw, rate, share) = (median(bare), median(rates), median(shares));
    Ok(Whole { raw, rate, share, per_delivery, requests })
}

async fn deliver(world: &World, revision: usize) -> Result<()> {
    let puts = stream::iter((0..DOCUMENTS).step_by(BATCH));
    let puts = puts.map(|from| world.put("items", from..from + BATCH, revision));
    puts.buffer_unordered(PUTS).try_collect::<()>().await?;
    Ok(world.flare.settled(LIMIT).await?)
}
