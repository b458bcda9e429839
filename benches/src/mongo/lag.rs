//! How long it takes to say how far behind a client is, among very many rows that are settled.

use std::time::Duration;

use flare_backend_mongo::{MongoConfig, MongoRepository};
use flare_benches::measure::median;
use flare_core::model::SubscriptionId;
use flare_core::port::RowStore;
use mongodb::Database;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};

use super::{Records, timed};
use crate::Result;

/// Rows that are pending.
pub(super) const PENDING: usize = 1_000;
/// Times it is counted.
const TRIES: usize = 21;
const CHUNK: usize = 10_000;

/// Fills the rows with copies of one that the store wrote itself, so that they are like any other,
/// and counts.
pub(super) async fn count(
    config: MongoConfig,
    database: &Database,
    rows: usize,
) -> Result<Duration> {
    let repository = MongoRepository::connect(config).await?;
    let records: Records = database.collection("flare_rows");
    let settled = records.find_one(doc! { "pending": { "$exists": false } }).await?;
    let settled = settled.ok_or("no row was settled before")?;
    let subscription = SubscriptionId::from_bytes([7; 16]);
    for from in (0..rows).step_by(CHUNK) {
        let copies = (from..rows.min(from + CHUNK)).map(|number| {
            let mut copy = settled.clone();
            copy.insert("_id", id(subscription, number));
            if number % (rows / PENDING) == 0 {
                copy.insert("pending", true);
            }
            copy
        });
        records.insert_many(copies).await?;
    }
    let mut times = Vec::with_capacity(TRIES);
    for _ in 0..TRIES {
        let (time, pending) =
            timed(async { Ok(repository.count_pending(Some(subscription)).await?) }).await?;
        if pending.count != PENDING as u64 {
            return Err(format!("{} pending were counted", pending.count).into());
        }
        times.push(time.as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(times)))
}

fn id(subscription: SubscriptionId, number: usize) -> Document {
    let bytes = subscription.as_bytes().to_vec();
    let subscription = Binary { subtype: BinarySubtype::Uuid, bytes };
    doc! { "subscription": subscription, "url": format!("http://api.example.com/items/{number}") }
}
