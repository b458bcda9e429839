//! Takes messages that became no document; keeps the last of each consumer, lists them, finds them by id, and
//! forgets them.

use std::collections::BTreeMap;

use flare_core::model::{ConsumerId, Reject, RejectId, Timestamp};
use flare_core::port::{Listing, Page};
use uuid::Uuid;

use super::super::PostgresRepository;
use crate::codec::reject::{StoredReject, record};
use crate::codec::{counted, id as uuid, limit, offset, time};
use crate::connection::Value;
use crate::fault::Worked;

/// A consumer, which stays as it is until the statement's transaction ends.
macro_rules! locked {
    () => {
        "WITH there AS (SELECT id FROM flare.consumers WHERE id = $1 FOR NO KEY UPDATE) "
    };
}

fn uuids(ids: &[RejectId]) -> Vec<Uuid> {
    ids.iter().map(|id| uuid(id.as_bytes())).collect()
}

fn stored(rows: &[tokio_postgres::Row]) -> Worked<Vec<StoredReject>> {
    Ok(rows.iter().map(StoredReject::of).collect::<std::result::Result<_, _>>()?)
}

impl PostgresRepository {
    /// Stores rejects of consumers that are there, and of each of these consumers forgets all but the last.
    pub(super) async fn keep_rejects(&self, rejects: &[Reject], most: usize) -> Worked<()> {
        const OPERATION: &str = "insert_rejects";
        const STORE: &str = "WITH there AS (SELECT id FROM flare.consumers WHERE id = ANY($1) ORDER BY id \
                 FOR NO KEY UPDATE) \
             INSERT INTO flare.consumer_rejects (consumer, id, rejected, record) \
             SELECT v.consumer, v.id, v.rejected, v.record \
             FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[]) v(consumer, id, rejected, record) \
             JOIN there t ON t.id = v.consumer ORDER BY v.consumer, v.id \
             ON CONFLICT (consumer, id) DO UPDATE \
                 SET rejected = excluded.rejected, record = excluded.record, needs = NULL";
        // A statement of its own: it sees what was stored before the consumers were locked.
        const TRIM: &str = "DELETE FROM flare.consumer_rejects r \
             USING (SELECT consumer, id, \
                     row_number() OVER (PARTITION BY consumer ORDER BY rejected DESC, id DESC) AS place \
                 FROM flare.consumer_rejects WHERE consumer = ANY($1)) k \
             WHERE k.place > $2 AND r.consumer = k.consumer AND r.id = k.id";
        // Of several with one id the last counts.
        let last: BTreeMap<(ConsumerId, RejectId), &Reject> =
            rejects.iter().map(|reject| ((reject.consumer, reject.id), reject)).collect();
        if last.is_empty() {
            return Ok(());
        }
        let (mut consumers, mut ids) = (Vec::new(), Vec::new());
        let (mut times, mut records) = (Vec::new(), Vec::new());
        for ((consumer, id), reject) in last {
            consumers.push(uuid(consumer.as_bytes()));
            ids.push(uuid(id.as_bytes()));
            times.push(time(reject.rejected_at));
            records.push(record(OPERATION, reject)?);
        }
        let values: [&dyn Value; 4] = [&consumers, &ids, &times, &records];
        let mut session = self.database.session(OPERATION).await?;
        session.begin(STORE, &values).await?;
        consumers.dedup();
        session.finish(TRIM, &[&consumers, &limit(most)]).await?;
        Ok(())
    }

    /// A page of a consumer's rejects, the oldest rejection first.
    pub(super) async fn page_of_rejects(
        &self,
        consumer: ConsumerId,
        page: Page,
    ) -> Worked<Listing<Reject>> {
        const OPERATION: &str = "list_rejects";
        const COUNT: &str = "SELECT count(*) FROM flare.consumer_rejects WHERE consumer = $1";
        const LIST: &str = "SELECT consumer, id, rejected, record, needs FROM flare.consumer_rejects \
             WHERE consumer = $1 ORDER BY rejected, id LIMIT $2 OFFSET $3";
        let consumer = uuid(consumer.as_bytes());
        let (most, skipped) = (i64::from(page.limit), offset(page.offset));
        let mut session = self.database.session(OPERATION).await?;
        let (total, rows) =
            session.both((COUNT, &[&consumer]), (LIST, &[&consumer, &most, &skipped])).await?;
        let (total, found) = (counted(total.first())?, stored(&rows)?);
        Ok(Listing::of_read(found.iter().map(|found| found.reject(OPERATION)), total)?)
    }

    /// The rejects with these ids that a consumer has.
    pub(super) async fn find_rejects(
        &self,
        consumer: ConsumerId,
        ids: &[RejectId],
    ) -> Worked<Vec<Reject>> {
        const OPERATION: &str = "rejects";
        const SQL: &str = "SELECT consumer, id, rejected, record, needs FROM flare.consumer_rejects \
             WHERE consumer = $1 AND id = ANY($2)";
        let values: [&dyn Value; 2] = [&uuid(consumer.as_bytes()), &uuids(ids)];
        let found = stored(&self.database.all(OPERATION, SQL, &values).await?)?;
        let read = found.iter().map(|found| found.reject(OPERATION));
        Ok(read.collect::<flare_core::Result<_>>()?)
    }

    pub(super) async fn drop_rejects(&self, consumer: ConsumerId, ids: &[RejectId]) -> Worked<()> {
        const SQL: &str = concat!(
            locked!(),
            "DELETE FROM flare.consumer_rejects r USING there t WHERE r.consumer = t.id AND r.id = ANY($2)"
        );
        let values: [&dyn Value; 2] = [&uuid(consumer.as_bytes()), &uuids(ids)];
        self.database.all("remove_rejects", SQL, &values).await?;
        Ok(())
    }

    /// Forgets some that were rejected before a time; tells how many.
    pub(super) async fn drop_old_rejects(
        &self,
        consumer: ConsumerId,
        before: Timestamp,
        most: usize,
    ) -> Worked<u64> {
        // One that is rejected again while the consumer is waited for stays.
        const SQL: &str = concat!(
            locked!(),
            "DELETE FROM flare.consumer_rejects r USING there t, (SELECT id FROM flare.consumer_rejects \
                 WHERE consumer = $1 AND rejected < $2 ORDER BY rejected, id LIMIT $3) old \
             WHERE r.consumer = t.id AND r.id = old.id AND r.rejected < $2 RETURNING 1"
        );
        let values: [&dyn Value; 3] = [&uuid(consumer.as_bytes()), &time(before), &limit(most)];
        Ok(self.database.all("expire_rejects", SQL, &values).await?.len() as u64)
    }
}
