//! Takes consumers as they are to be; stores them, and gives them as they are stored, or the error that names one.

use flare_core::ErrorKind;
use flare_core::model::{Consumer, ConsumerId, Generation};
use flare_core::port::{Listing, Page, Replaced, Scan};
use uuid::Uuid;

use super::super::PostgresRepository;
use crate::codec::consumer::{StoredConsumer, record};
use crate::codec::{count, counted, id as uuid, limit, offset};
use crate::connection::Value;
use crate::error;
use crate::fault::Worked;
use crate::pages::{ScanPage, pages};

/// Consumers of a page of a scan.
const PAGE: usize = 256;

/// The columns that [`StoredConsumer::of`] reads.
macro_rules! columns {
    () => {
        "c.id, c.resource, c.generation, c.record, c.needs"
    };
}

/// The record of a consumer.
const BY_ID: &str = concat!("SELECT ", columns!(), " FROM flare.consumers c WHERE c.id = $1");
/// The same, to be changed: all that is stored for it waits meanwhile.
const BY_ID_TO_CHANGE: &str =
    concat!("SELECT ", columns!(), " FROM flare.consumers c WHERE c.id = $1 FOR NO KEY UPDATE");

fn stored(rows: &[tokio_postgres::Row]) -> Worked<Vec<StoredConsumer>> {
    Ok(rows.iter().map(StoredConsumer::of).collect::<std::result::Result<_, _>>()?)
}

impl PostgresRepository {
    pub(super) async fn insert_record(&self, given: &Consumer) -> Worked<Consumer> {
        const OPERATION: &str = "insert_consumer";
        // One that is there is given as it is: written as it was, so that also one is found that another
        // transaction has made since this statement began.
        const SQL: &str = concat!(
            "INSERT INTO flare.consumers AS c (id, resource, generation, record) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET generation = c.generation RETURNING ",
            columns!()
        );
        let (id, resource) = (uuid(given.id.as_bytes()), uuid(given.resource.as_bytes()));
        let (generation, text) = (count(given.generation.get()), record(OPERATION, given)?);
        let values: [&dyn Value; 4] = [&id, &resource, &generation, &text];
        let Some(row) = self.database.one(OPERATION, SQL, &values).await? else {
            let detail = "the server does not say what it stored";
            return Err(error::of(ErrorKind::Internal, OPERATION, detail).into());
        };
        Ok(StoredConsumer::of(&row)?.consumer(OPERATION)?)
    }

    pub(super) async fn read_consumer(&self, id: ConsumerId) -> Worked<Option<Consumer>> {
        const OPERATION: &str = "consumer";
        let found = self.database.one(OPERATION, BY_ID, &[&uuid(id.as_bytes())]).await?;
        let found = found.as_ref().map(StoredConsumer::of).transpose()?;
        Ok(found.map(|found| found.consumer(OPERATION)).transpose()?)
    }

    pub(super) async fn page_of_consumers(&self, page: Page) -> Worked<Listing<Consumer>> {
        const OPERATION: &str = "list_consumers";
        const COUNT: &str = "SELECT count(*) FROM flare.consumers";
        const LIST: &str = concat!(
            "SELECT ",
            columns!(),
            " FROM flare.consumers c ORDER BY c.id LIMIT $1 OFFSET $2"
        );
        let (most, skipped) = (i64::from(page.limit), offset(page.offset));
        let mut session = self.database.session(OPERATION).await?;
        let (total, rows) = session.both((COUNT, &[]), (LIST, &[&most, &skipped])).await?;
        let (total, found) = (counted(total.first())?, stored(&rows)?);
        Ok(Listing::of_read(found.iter().map(|found| found.consumer(OPERATION)), total)?)
    }

    pub(super) fn scan_records(&self, after: Option<ConsumerId>) -> Scan<'_, Consumer> {
        const OPERATION: &str = "scan_consumers";
        let start = after.map(|after| uuid(after.as_bytes()));
        pages(start, move |after| {
            let read = move || self.page_of_records(after);
            Box::pin(async move { self.database.attempts(OPERATION, read).await })
        })
    }

    async fn page_of_records(
        &self,
        after: Option<Uuid>,
    ) -> Worked<ScanPage<Consumer, Option<Uuid>>> {
        const OPERATION: &str = "scan_consumers";
        const SQL: &str = concat!(
            "SELECT ",
            columns!(),
            " FROM flare.consumers c WHERE $1::uuid IS NULL OR c.id > $1 ORDER BY c.id LIMIT $2"
        );
        let found = stored(&self.database.all(OPERATION, SQL, &[&after, &limit(PAGE)]).await?)?;
        let last = found.last().filter(|_| found.len() == PAGE);
        let next = last.map(|last| Some(uuid(last.id().as_bytes())));
        Ok((found.iter().map(|found| found.consumer(OPERATION)).collect(), next))
    }

    /// Replaces one that is still at a generation. It is read first: what a newer version put there stays.
    pub(super) async fn replace_record(
        &self,
        generation: Generation,
        given: &Consumer,
    ) -> Worked<Replaced<Consumer>> {
        const OPERATION: &str = "replace_consumer";
        const UPDATE: &str =
            "UPDATE flare.consumers SET generation = $2, record = $3 WHERE id = $1";
        let id = uuid(given.id.as_bytes());
        let mut session = self.database.session(OPERATION).await?;
        let there = session.begin(BY_ID_TO_CHANGE, &[&id]).await?;
        let Some(there) = there.first() else {
            session.roll_back().await?;
            return Ok(Replaced::Missing);
        };
        let there = StoredConsumer::of(there)?.consumer(OPERATION)?;
        if there.generation != generation {
            session.roll_back().await?;
            return Ok(Replaced::Conflict(there));
        }
        let next = there.replaced_by(given.clone());
        let (generation, text) = (count(next.generation.get()), record(OPERATION, &next)?);
        session.finish(UPDATE, &[&id, &generation, &text]).await?;
        Ok(Replaced::Done(next))
    }

    /// Forgets one, with its state, which is in its record, and its rejects, which the server removes with it; not
    /// if it is at another generation than the one named. Tells whether it is gone.
    pub(super) async fn remove_record(
        &self,
        id: ConsumerId,
        at: Option<Generation>,
    ) -> Worked<bool> {
        const OPERATION: &str = "remove_consumer";
        const SQL: &str = "DELETE FROM flare.consumers WHERE id = $1 AND generation = coalesce($2, generation) \
             RETURNING 1";
        const THERE: &str = "SELECT 1 FROM flare.consumers WHERE id = $1";
        let (id, at) = (uuid(id.as_bytes()), at.map(|at| count(at.get())));
        let mut session = self.database.session(OPERATION).await?;
        if session.query_opt(SQL, &[&id, &at]).await?.is_some() {
            return Ok(true);
        }
        Ok(session.query_opt(THERE, &[&id]).await?.is_none())
    }
}
