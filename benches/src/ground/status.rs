//! Takes a large store with a small lag; gives how long it takes to say how a subscription is
//! doing.

use std::hint::black_box;

use flare_benches::measure::{median, time};
use flare_benches::world::{FIRST, World, body, ready, urls};
use flare_core::Flare;
use flare_core::model::SubscriptionSpec;

use super::claim::Claim;
use super::options::Options;
use crate::Result;

const LAG: usize = 1_000;
const BATCH: usize = 1_000;
const CONTENT: usize = 200;

/// The status of a subscription that has all of a large store's documents but a few.
pub(super) fn status(options: &Options) -> Result<Claim> {
    let documents = options.documents;
    let world = World::new()?;
    let (flare, _) = Flare::builder(world.backend.clone()).build()?;
    let spec = SubscriptionSpec::post("http://client.example.com/{item}");
    let subscription = ready(flare.create_subscription(world.resource.id, spec))??.id;
    let body = body(FIRST, CONTENT);
    for start in (0..documents).step_by(BATCH) {
        let urls = urls(start..documents.min(start + BATCH));
        world.fill(&urls, &body, FIRST)?;
        let keys = world.keys(&urls)?;
        world.spread(&[subscription], &keys, FIRST)?;
        let told = documents.saturating_sub(LAG).saturating_sub(start).min(keys.len());
        world.settle(&[subscription], &keys[..told], FIRST)?;
    }
    let mut took = Vec::with_capacity(options.rounds);
    for _ in 0..options.rounds {
        let mut lag = 0;
        let time = time(|| {
            let report = black_box(ready(flare.subscription_status(subscription))??);
            lag = report.lag;
            Ok::<_, crate::Error>(())
        })?;
        if lag != LAG as u64 {
            return Err(format!("the lag is {lag}, not {LAG}").into());
        }
        took.push(time.as_secs_f64() * 1e3);
    }
    Ok(Claim {
        id: "status_ms",
        name: format!("ms for a status, {documents} stored, lag {LAG}"),
        figure: median(took),
        limit: 20.0,
        detail: "one subscription, the median".to_owned(),
    })
}
