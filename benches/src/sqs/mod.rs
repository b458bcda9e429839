//! Takes an SQS server; tells how many deliveries a second Flare makes with its queue there, as a share
//! of the messages the same server moves bare in the same run, what a delivery costs in requests, and
//! what many lanes cost that have nothing to do.

mod lanes;
pub(crate) mod raw;
mod whole;
mod world;

use std::time::Duration;

use flare_core::model::Placement;

use crate::Result;
use crate::number::number;

pub(crate) use lanes::{LANES, weigh};

/// The most a delivery may cost in requests: shared queues, a hundred subscriptions, full batches.
const REQUESTS_LIMIT: f64 = 0.35;
/// Subscriptions, each told of every document.
const SUBSCRIPTIONS: [usize; 3] = [1, 10, 100];
/// Lanes on one node, by where their wake-ups wait.
const NODES: [(Placement, usize); 2] = [(Placement::Shared, 1_000), (Placement::Isolated, 200)];

struct Options {
    rounds: usize,
    idle: Duration,
    json: bool,
}

pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let mut options = Options { rounds: 5, idle: Duration::from_secs(60), json: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--rounds" => options.rounds = number(arg, args.next(), 3)?,
            "--seconds" => options.idle = Duration::from_secs(number(arg, args.next(), 1)?),
            "--json" => options.json = true,
            _ => return Err(format!("sqs does not know {arg}\n\n{}", crate::USAGE).into()),
        }
    }
    let endpoint = endpoint()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let holds = runtime.block_on(measure(&endpoint, &options))?;
    runtime.shutdown_background();
    // Processes of their own: memory that something else used before is not theirs.
    for (placement, lanes) in NODES {
        lanes::in_process(placement, lanes, options.idle)?;
    }
    Ok(holds)
}

pub(crate) fn endpoint() -> Result<String> {
    Ok(std::env::var("FLARE_TEST_SQS_ENDPOINT").map_err(
        |_| "needs a server: scripts/services up sqs && eval \"$(scripts/services env sqs)\"",
    )?)
}

async fn measure(endpoint: &str, options: &Options) -> Result<bool> {
    println!(
        "deliveries a second, {} documents put {} at a time, queue on SQS, the rest in memory;",
        whole::DOCUMENTS,
        whole::BATCH
    );
    println!(
        "as a share of messages sent, received and deleted bare, ten at a time, over {} connections:",
        raw::CONNECTIONS
    );
    let mut holds = true;
    let mut figures = serde_json::Map::new();
    for subscriptions in SUBSCRIPTIONS {
        let whole = whole::measure(endpoint, subscriptions, options.rounds).await?;
        let whole::Whole { raw, rate, share, per_delivery, requests } = whole;
        println!(
            "  S={subscriptions:<4} {rate:>8.0}/s  bare {raw:>6.0}/s  share {share:>6.2}  \
             {per_delivery:.4} requests per delivery ({requests:?})"
        );
        if subscriptions == SUBSCRIPTIONS[SUBSCRIPTIONS.len() - 1] {
            holds = per_delivery <= REQUESTS_LIMIT;
            println!("requests per delivery, S={subscriptions}: claimed at most {REQUESTS_LIMIT}");
        }
        let of = serde_json::json!({
            "raw_per_second": raw,
            "deliveries_per_second": rate,
            "share": share,
            "requests_per_delivery": per_delivery,
        });
        figures.insert(format!("s{subscriptions}"), of);
    }
    if options.json {
        println!("{}", serde_json::Value::from(figures));
    }
    Ok(holds)
}
