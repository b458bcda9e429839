//! Takes stores of different sizes; gives what a put costs, as ratios within one run.

use std::hint::black_box;

use flare_benches::measure::{Comparison, compare, time};
use flare_benches::world::{FIRST, World, body, url, urls};
use flare_core::model::DocumentChange;
use serde_json::Value;

use super::claim::Claim;
use super::options::Options;
use crate::Result;

/// Puts per round: enough for the clock, few enough for many rounds.
const PUTS: usize = 1_000;
const SMALL_BODY: usize = 200;
const LARGE_BODY: usize = 1024;

/// An unchanged put next to reading its body into a tree.
pub(super) fn unchanged(options: &Options) -> Result<Claim> {
    const TURNS: usize = 20;
    let world = World::new()?;
    let (urls, body) = (urls(0..PUTS), body(FIRST, SMALL_BODY));
    world.fill(&urls, &body, FIRST)?;
    let put = |_| {
        time(|| (0..TURNS).try_for_each(|_| world.put_all(&urls, &body, DocumentChange::Unchanged)))
            .map_err(Into::into)
    };
    let parse = |_| {
        time(|| {
            for _ in 0..TURNS * PUTS {
                black_box(serde_json::from_slice::<Value>(black_box(&body))?);
            }
            Ok::<_, crate::Error>(())
        })
    };
    let compared = compare(options.rounds, TURNS * PUTS, put, parse)?;
    let name = "unchanged put / parsing its 200 bytes".to_owned();
    Ok(claim("unchanged_put_by_parse", name, 3.0, &compared))
}

/// A put into a large store next to the same put into an empty one.
pub(super) fn stores(options: &Options) -> Result<[Claim; 2]> {
    let documents = options.documents;
    let (large, small) = (World::new()?, World::new()?);
    let first = body(FIRST, LARGE_BODY);
    for start in (0..documents).step_by(PUTS) {
        large.fill(&urls(start..documents.min(start + PUTS)), &first, FIRST)?;
    }
    // Both have room for what is coming, so that neither grows its tables meanwhile.
    for world in [&large, &small] {
        let warm = urls(documents..documents + 8 * PUTS);
        world.fill(&warm, &first, FIRST)?;
        world.remove(&warm, FIRST)?;
    }

    let create = |world: &World, round: usize| {
        let start = documents + (8 + round) * PUTS;
        let new = urls(start..start + PUTS);
        let took = time(|| world.put_all(&new, &first, DocumentChange::Created))?;
        world.dispatch(&new, FIRST)?;
        world.remove(&new, FIRST)?;
        Ok::<_, crate::Error>(took)
    };
    let created = compare(
        options.rounds,
        PUTS,
        |round| create(&large, round),
        |round| create(&small, round),
    )?;

    let few = urls(0..PUTS);
    small.fill(&few, &first, FIRST)?;
    let update = |world: &World, urls: &[String], round: usize| {
        let revision = FIRST + 1 + round as i64;
        let next = body(revision, LARGE_BODY);
        let took = time(|| world.put_all(urls, &next, DocumentChange::Updated))?;
        world.dispatch(urls, revision)?;
        Ok::<_, crate::Error>(took)
    };
    let stride = documents / PUTS;
    let anywhere = |round: usize| -> Vec<String> {
        (0..PUTS).map(|number| url((number * stride + round) % documents)).collect()
    };
    let updated = compare(
        options.rounds,
        PUTS,
        |round| update(&large, &anywhere(round), round),
        |round| update(&small, &few, round),
    )?;

    let name = |what: &str| format!("{what} put, {documents} stored / none");
    Ok([
        claim("created_put_large_by_empty", name("created"), 2.0, &created),
        claim("updated_put_large_by_empty", name("updated"), 2.0, &updated),
    ])
}

fn claim(id: &'static str, name: String, limit: f64, compared: &Comparison) -> Claim {
    let detail = format!("{:.0} ns / {:.0} ns", compared.first, compared.second);
    Claim { id, name, figure: compared.ratio, limit, detail }
}
