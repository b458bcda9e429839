//! Takes records of nobody; removes them in batches, and looks before each whether they are still
//! nobody's.

use flare_core::Result;
use flare_core::port::StepProgress;
use mongodb::bson::{Bson, doc};

use super::MongoUpkeep;
use super::orphans::Orphans;
use crate::record::Record;

const OPERATION: &str = "apply";
/// How many records are removed between two looks at their owner.
const BATCH: u32 = 1_000;

impl MongoUpkeep {
    /// Removes them; tells whether there were any.
    pub(super) async fn sweep(
        &self,
        orphans: &Orphans,
        progress: &dyn StepProgress,
    ) -> Result<bool> {
        let connection = &self.connection;
        let records = connection.collection(orphans.kind.records);
        let now = self.server_millis(OPERATION).await?;
        let filter = orphans.filter(now);
        let count = records.count_documents(filter.clone());
        let total = connection.patiently(OPERATION, count).await?;
        let mut done = 0;
        while self.is_orphaned(OPERATION, orphans, now).await? {
            let some = records.find(filter.clone()).projection(doc! { "_id": 1 });
            let some = some.limit(i64::from(BATCH)).batch_size(BATCH);
            let read = |record: Record<'_>| Ok(record.any("_id").cloned());
            let ids: Vec<Bson> =
                connection.all(OPERATION, some, read).await?.into_iter().flatten().collect();
            if ids.is_empty() {
                break;
            }
            let removed = records.delete_many(doc! { "_id": { "$in": ids } });
            done += connection.run(OPERATION, removed).await?.deleted_count;
            // More may have come since they were counted.
            progress.advanced(done.min(total), Some(total));
        }
        Ok(done > 0)
    }
}
