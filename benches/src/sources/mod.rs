//! Takes brokers; tells how many messages a second Flare pulls from each and stores, as a share of what the same
//! broker gives a bare client that acknowledges and forgets, in turns of one run.

mod pulled;
mod rabbitmq;
mod sqs;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_benches::measure::median;
use flare_core::model::SourceSettings;
use flare_core::port::SourceConnector;

use self::pulled::Puller;
use self::rabbitmq::OnRabbitMq;
use self::sqs::OnSqs;
use crate::Result;
use crate::e2e::StoreKind;
use crate::number::number;

/// What is claimed of each broker, by the store that the documents go to.
const CLAIMS: [(&str, StoreKind, f64); 3] = [
    ("sqs", StoreKind::Memory, 0.8),
    ("rabbitmq", StoreKind::Memory, 0.5),
    ("rabbitmq", StoreKind::Sqlite, 0.3),
];
/// Bytes of a message, about.
const BYTES: usize = 1_024;

/// A broker, on which every turn has a queue of its own: a poll that was given up may still be answered, with messages
/// of the next turn.
#[async_trait]
trait Broker: Send + Sync {
    /// What Flare opens it by.
    fn connector(&self) -> Result<Arc<dyn SourceConnector>>;

    /// What a consumer of a queue says.
    fn settings(&self, queue: &str) -> Result<SourceSettings>;

    /// Messages of a turn.
    fn messages(&self) -> usize;

    /// Makes a queue of that name, fills it, and waits until the broker has all of it.
    async fn fill(&self, queue: &str, messages: Vec<String>) -> Result<()>;

    /// Takes so many messages and acknowledges them; gives how long that took, once it was connected.
    async fn take(&self, queue: &str, messages: usize) -> Result<Duration>;

    /// Removes a queue.
    async fn remove(&self, queue: &str) -> Result<()>;
}

pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let (mut rounds, mut json) = (5, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--rounds" => rounds = number(arg, args.next(), 3)?,
            "--json" => json = true,
            _ => return Err(format!("sources does not know {arg}\n\n{}", crate::USAGE).into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let holds = runtime.block_on(measure(rounds, json))?;
    runtime.shutdown_background();
    Ok(holds)
}

async fn measure(rounds: usize, json: bool) -> Result<bool> {
    println!(
        "messages a second of {BYTES} bytes, each a document, as a share of what a bare client takes:"
    );
    let mut holds = true;
    let mut figures = serde_json::Map::new();
    for (name, store, claim) in CLAIMS {
        let broker: Box<dyn Broker> = match name {
            "sqs" => Box::new(OnSqs::make()?),
            _ => Box::new(OnRabbitMq::make().await?),
        };
        let (bare, rate, share) = rounds_of(&*broker, store, rounds).await?;
        let store = store.as_str();
        println!(
            "  {name:<9} to {store:<7} {rate:>8.0}/s  bare {bare:>8.0}/s  share {share:>5.2}  claimed at least {claim}"
        );
        holds &= share >= claim;
        let of = serde_json::json!({"bare_per_second": bare, "per_second": rate, "share": share});
        figures.insert(format!("{name}_{store}"), of);
    }
    if json {
        println!("{}", serde_json::Value::from(figures));
    }
    Ok(holds)
}

/// The medians of what a bare client takes, of what Flare does, and of the second by the first.
async fn rounds_of(
    broker: &dyn Broker,
    store: StoreKind,
    rounds: usize,
) -> Result<(f64, f64, f64)> {
    let puller = Puller::start(broker, store).await?;
    let count = broker.messages();
    let (mut bare, mut rates, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    // The first round makes the documents, and does not count.
    for round in 0..=rounds {
        let name = |turn| format!("bench-source-{}-{round}-{turn}", std::process::id());
        let queue = name("bare");
        broker.fill(&queue, messages(count, round)).await?;
        let taken = count as f64 / broker.take(&queue, count).await?.as_secs_f64();
        broker.remove(&queue).await?;
        let queue = name("flare");
        broker.fill(&queue, messages(count, round)).await?;
        let settings = broker.settings(&queue)?;
        let pulled = count as f64 / puller.pull(settings, count).await?.as_secs_f64();
        broker.remove(&queue).await?;
        if round > 0 {
            bare.push(taken);
            rates.push(pulled);
            shares.push(pulled / taken);
        }
    }
    puller.remove().await?;
    Ok((median(bare), median(rates), median(shares)))
}

fn messages(count: usize, revision: usize) -> Vec<String> {
    let message =
        |id: usize| format!(r#"{{"id":{id},"rev":{revision},"pad":"{}"}}"#, "x".repeat(BYTES - 40));
    (0..count).map(message).collect()
}
