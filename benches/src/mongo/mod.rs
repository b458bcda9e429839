//! Takes a MongoDB server; tells what the repository on it does a second, as a share of what the
//! same server does of bare `bulkWrite` updates in the same run, what a record weighs, and how long
//! it takes to count a lag of 1,000 among a million rows. Judges the shares and that time.

mod lag;
mod raw;
mod store;
mod whole;

use std::time::Duration;

use flare_backend_mongo::MongoConfig;
use flare_benches::measure::median;
use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};

use crate::Result;
use crate::number::number;

/// Records per round trip, as in the claim about round trips.
pub(crate) const BATCH: usize = 100;
/// The most counting a lag of 1,000 may take, as the median of all tries.
const LAG_LIMIT: Duration = Duration::from_millis(50);

struct Options {
    rows: usize,
    rounds: usize,
    json: bool,
}

pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let mut options = Options { rows: 1_000_000, rounds: 15, json: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--rows" => options.rows = number(arg, args.next(), 2_000)?,
            "--rounds" => options.rounds = number(arg, args.next(), 3)?,
            "--json" => options.json = true,
            _ => return Err(format!("mongo does not know {arg}\n\n{}", crate::USAGE).into()),
        }
    }
    let uri = server()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&uri, &options))
}

/// Where the server is.
pub(crate) fn server() -> Result<String> {
    let uri = std::env::var("FLARE_TEST_MONGODB_URI").map_err(|_| {
        "needs a server: scripts/services up mongodb && eval \"$(scripts/services env mongodb)\""
    })?;
    Ok(uri)
}

async fn measure(uri: &str, options: &Options) -> Result<bool> {
    let name = format!("flare-bench-{}", std::process::id());
    let database = Client::with_uri_str(uri).await?.database(&name);
    let config = || MongoConfig::new(uri).database(&name).create_missing();
    let measured = async {
        let shares = shares(config(), &database, options).await?;
        let whole = whole::deliveries_per_second(config(), options.rounds).await?;
        let weights =
            [weight(&database, "flare_documents").await?, weight(&database, "flare_rows").await?];
        let lag = lag::count(config(), &database, options.rows).await?;
        Ok::<_, crate::Error>((shares, whole, weights, lag))
    };
    let measured = measured.await;
    database.drop().await?;
    let (shares, whole, weights, lag) = measured?;
    let raw = shares.raw;
    let mut holds = lag <= LAG_LIMIT;
    println!("records a second in batches of {BATCH}, and as a share of bare bulkWrite updates:");
    println!("  bare $set by _id            {raw:>8.0}   1.00");
    for (store::Measured { what, least }, rate) in &shares.of {
        let share = rate / raw;
        let enough = least.is_none_or(|least| share >= least);
        holds &= enough;
        let claimed = least.map_or_else(String::new, |least| {
            format!(", claimed at least {least:.2}{}", if enough { "" } else { ": MISSED" })
        });
        println!("  {what:<27} {rate:>8.0}   {share:.2}{claimed}");
    }
    println!(
        "deliveries a second, put to settled, S=10: {whole:.0}, {:.2} of bare updates",
        whole / raw
    );
    for (what, weight) in ["document of 200 bytes", "row"].iter().zip(weights) {
        println!("bytes per {what}: {weight}");
    }
    println!(
        "lag of {} among {} rows: {lag:?} (median), claimed at most {LAG_LIMIT:?}",
        lag::PENDING,
        options.rows
    );
    if options.json {
        let of: serde_json::Map<String, serde_json::Value> = shares
            .of
            .iter()
            .map(|(call, rate)| (call.what.to_owned(), (*rate / raw).into()))
            .collect();
        let figures = serde_json::json!({
            "raw_per_second": raw,
            "shares": of,
            "deliveries_per_second": whole,
            "delivery_share": whole / raw,
            "lag_ms": lag.as_secs_f64() * 1e3,
            "rows": options.rows,
        });
        println!("{figures}");
    }
    Ok(holds)
}

struct Shares {
    raw: f64,
    of: Vec<(store::Measured, f64)>,
}

/// The rates of the store's calls and of bare updates, taken in turns.
async fn shares(config: MongoConfig, database: &Database, options: &Options) -> Result<Shares> {
    let mut raw = raw::Raw::new(database).await?;
    let mut store = store::Store::new(config).await?;
    let mut bare = Vec::new();
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); store::CALLS.len()];
    for round in 0..options.rounds as i64 + 1 {
        let times = store.round(round + 1).await?;
        let time = raw.round(round).await?;
        // The first round makes what the others change.
        if round > 0 {
            bare.push(BATCH as f64 / time.as_secs_f64());
            for (rates, time) in rates.iter_mut().zip(times) {
                rates.push(BATCH as f64 / time.as_secs_f64());
            }
        }
    }
    let of = store::CALLS.into_iter().zip(rates.into_iter().map(median)).collect();
    Ok(Shares { raw: median(bare), of })
}

/// What the records of a collection weigh each: as BSON, on disk, and in indexes.
async fn weight(database: &Database, collection: &str) -> Result<String> {
    let stats = database.run_command(doc! { "collStats": collection }).await?;
    let count = statistic(&stats, "count").unwrap_or(f64::NAN);
    let per = |field: &str| {
        statistic(&stats, field).map_or_else(|| "?".to_owned(), |it| format!("{:.0}", it / count))
    };
    Ok(format!(
        "{} as BSON, {} stored, {} in indexes ({count} records)",
        per("size"),
        per("storageSize"),
        per("totalIndexSize")
    ))
}

/// A figure of `collStats`, whose type depends on how large it is.
pub(crate) fn statistic(stats: &Document, field: &str) -> Option<f64> {
    let value = stats.get(field)?;
    value
        .as_f64()
        .or_else(|| value.as_i64().map(|it| it as f64))
        .or_else(|| value.as_i32().map(f64::from))
}

/// How long something takes.
#[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
pub(crate) async fn timed<T>(work: impl Future<Output = Result<T>>) -> Result<(Duration, T)> {
    let started = std::time::Instant::now();
    let value = work.await?;
    Ok((started.elapsed(), value))
}

pub(crate) type Records = mongodb::Collection<Document>;
