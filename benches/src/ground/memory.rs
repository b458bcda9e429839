//! Takes a number of documents or rows; gives what each takes beyond its content, measured as
//! growth of a process that does nothing else.

use std::process::{Command, Stdio};

use flare_benches::measure::resident_bytes;
use flare_benches::world::{FIRST, World, body, subscriptions, urls};

use super::claim::Claim;
use super::options::Options;
use crate::Result;

/// The command by which `ground` has a process of its own measure.
pub(crate) const WEIGH: &str = "weigh";

const DOCUMENT: &str = "document";
const ROW: &str = "row";

const BATCH: usize = 1_000;
const CONTENT: usize = 1024;
/// Rows share nothing with the content, so it may be small where only they are weighed.
const SMALL_CONTENT: usize = 200;

/// What a document and a row take.
pub(super) fn claims(options: &Options) -> Result<[Claim; 2]> {
    let count = options.documents;
    let claim = |id, what, limit, detail: &str| -> Result<Claim> {
        Ok(Claim {
            id,
            name: format!("bytes per {what} beyond content, {count} stored"),
            figure: in_a_process(what, count)?,
            limit,
            detail: detail.to_owned(),
        })
    };
    Ok([
        claim("bytes_per_document", DOCUMENT, 400.0, "1 KiB of content each, URL counted")?,
        claim("bytes_per_row", ROW, 200.0, "one subscription, all settled")?,
    ])
}

fn in_a_process(what: &str, count: usize) -> Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args([WEIGH, what, &count.to_string()])
        // What is freed goes back to the system at once: only what is in use is weighed.
        .env("MIMALLOC_PURGE_DELAY", "0")
        .stderr(Stdio::inherit())
        .output()?;
    let said = String::from_utf8(output.stdout)?;
    said.trim().parse().map_err(|_| format!("weighing {what} gave no figure: {said:?}").into())
}

/// Measures one kind of thing and prints what one of it takes, in bytes.
pub(crate) fn weigh(args: &[&str]) -> Result<()> {
    let [what, count] = args else {
        return Err("weigh needs what to weigh, and how many".into());
    };
    let count: usize = count.parse()?;
    let grown = match *what {
        DOCUMENT => documents(count)? - (count * CONTENT) as f64,
        ROW => rows(count)?,
        _ => return Err(format!("weigh does not know {what}").into()),
    };
    println!("{}", grown / count as f64);
    Ok(())
}

fn documents(count: usize) -> Result<f64> {
    let world = World::new()?;
    grown_by(|| fill(&world, count, CONTENT))
}

fn rows(count: usize) -> Result<f64> {
    let world = World::new()?;
    fill(&world, count, SMALL_CONTENT)?;
    let subscription = subscriptions(1);
    grown_by(|| {
        batches(count).try_for_each(|batch| {
            let documents = world.keys(&urls(batch))?;
            world.spread(&subscription, &documents, FIRST)?;
            world.settle(&subscription, &documents, FIRST)?;
            Ok(())
        })
    })
}

fn fill(world: &World, count: usize, bytes: usize) -> Result<()> {
    let body = body(FIRST, bytes);
    batches(count).try_for_each(|batch| Ok(world.fill(&urls(batch), &body, FIRST)?))
}

fn batches(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..count).step_by(BATCH).map(move |start| start..count.min(start + BATCH))
}

fn grown_by(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let before = resident_bytes()?;
    work()?;
    Ok(resident_bytes()? as f64 - before as f64)
}
