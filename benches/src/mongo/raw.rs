//! The least that has to happen: updates of single records by id, in one `bulkWrite`.

use std::time::Duration;

use mongodb::bson::doc;
use mongodb::options::{Acknowledgment, UpdateOneModel, WriteConcern};
use mongodb::{Client, Database};

use super::{BATCH, Records, timed};
use crate::Result;

pub(super) struct Raw {
    client: Client,
    records: Records,
}

impl Raw {
    /// Records of about a row's size, with as many bytes to change.
    pub(super) async fn new(database: &Database) -> Result<Self> {
        let records: Records = database.collection("bare");
        let record = |id: usize| doc! { "_id": id as i64, "n": 0_i64, "pad": "x".repeat(300) };
        records.insert_many((0..BATCH).map(record)).await?;
        Ok(Self { client: database.client().clone(), records })
    }

    pub(super) async fn round(&mut self, round: i64) -> Result<Duration> {
        let model = |id: usize| {
            UpdateOneModel::builder()
                .namespace(self.records.namespace())
                .filter(doc! { "_id": id as i64 })
                .update(doc! { "$set": { "n": round + 1 } })
                .build()
        };
        // As safe as the store's own writes.
        let safe = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        let write =
            self.client.bulk_write((0..BATCH).map(model)).ordered(false).write_concern(safe);
        let (time, done) = timed(async { Ok(write.await?) }).await?;
        if done.modified_count != BATCH as i64 {
            return Err(
                format!("{} of {BATCH} bare updates took place", done.modified_count).into()
            );
        }
        Ok(time)
    }
}
