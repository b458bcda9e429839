//! Takes long work; gives it to whoever goes on with it.

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{Applied, Epoch, Job, JobId, JobKind, RecordName, Timestamp};
use flare_core::port::{JobStore, Listing, Page, Scan};
use rusqlite::{Connection, OptionalExtension, params};

use super::documents::pages;
use super::{SqliteRepository, limit};
use crate::codec::job::{COLUMNS, StoredJob};
use crate::codec::{count, counted, read_epoch, time, unreadable_record, word};
use crate::engine::{Effort, Reader, Tx};
use crate::fault::Worked;

#[async_trait]
impl JobStore for SqliteRepository {
    async fn insert_job(&self, job: Job) -> Result<bool> {
        self.engine.write(Effort::durable("insert_job"), move |tx| insert(tx, &job)).await
    }

    fn due_jobs(&self, due_by: Timestamp, most: usize) -> Scan<'_, Job> {
        const OPERATION: &str = "due_jobs";
        let start = (i64::MIN, Vec::new(), most);
        pages(start, move |(due, id, left)| {
            let read = move |reader: &Reader<'_>| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM jobs WHERE (due, id) > (?1, ?2) AND due <= ?3 \
                     ORDER BY due, id LIMIT ?4"
                );
                let mut find = reader.sql(&sql)?;
                let values = params![due, id, time(due_by), limit(left)];
                let found = find.query_map(values, StoredJob::of)?;
                let found: Vec<StoredJob> = found.collect::<rusqlite::Result<_>>()?;
                let read: Vec<Result<Job>> = found.iter().map(|it| it.job(OPERATION)).collect();
                // Those that cannot be read take no place.
                let more = left - read.iter().filter(|read| read.is_ok()).count();
                let last = found.last().filter(|_| found.len() == left && more > 0);
                let next = last.map(|last| {
                    let (due, id) = last.place();
                    (due, id.to_vec(), more)
                });
                Ok((read, next))
            };
            Box::pin(self.engine.read(OPERATION, read))
        })
    }

    async fn job(&self, kind: JobKind, subject: &str) -> Result<Option<Job>> {
        let subject = subject.to_owned();
        let read = move |reader: &Reader<'_>| {
            let found = of_subject(reader.connection, kind, &subject)?;
            Ok(found.map(|found| found.job("job")).transpose()?)
        };
        self.engine.read("job", read).await
    }

    async fn list_jobs(&self, page: Page) -> Result<Listing<Job>> {
        const OPERATION: &str = "list_jobs";
        let read = move |reader: &Reader<'_>| {
            let total = reader.sql("SELECT count(*) FROM jobs")?.query_row([], counted)?;
            let sql = format!("SELECT {COLUMNS} FROM jobs ORDER BY id LIMIT ?1 OFFSET ?2");
            let mut list = reader.sql(&sql)?;
            let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
            let found = list.query_map(params![page.limit, offset], StoredJob::of)?;
            let found: Vec<StoredJob> = found.collect::<rusqlite::Result<_>>()?;
            Ok(Listing::of_read(found.iter().map(|found| found.job(OPERATION)), total)?)
        };
        self.engine.read(OPERATION, read).await
    }

    async fn claim_job(
        &self,
        epoch: Epoch,
        id: JobId,
        due_by: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>> {
        const OPERATION: &str = "claim_job";
        let claim = move |tx: &mut Tx<'_>| {
            let mut update = tx.sql(&format!(
                "UPDATE jobs SET due = ?2, epoch = ?3 WHERE id = ?1 AND epoch <= ?3 AND due <= ?4 \
                 RETURNING {COLUMNS}"
            ))?;
            let values = params![id.as_bytes(), time(until), count(epoch.get()), time(due_by)];
            let claimed = update.query_row(values, StoredJob::of).optional()?;
            Ok(claimed.map(|claimed| claimed.job(OPERATION)).transpose()?)
        };
        self.engine.write(Effort::durable(OPERATION), claim).await
    }

    async fn advance_job(
        &self,
        epoch: Epoch,
        id: JobId,
        cursor: Option<String>,
        due: Timestamp,
    ) -> Result<Applied> {
        const OPERATION: &str = "advance_job";
        let advance = move |tx: &mut Tx<'_>| {
            if let Some(refused) = fenced(tx, OPERATION, epoch, id)? {
                return Ok(refused);
            }
            let mut update =
                tx.sql("UPDATE jobs SET cursor = ?2, due = ?3, epoch = ?4 WHERE id = ?1")?;
            update.execute(params![id.as_bytes(), cursor, time(due), count(epoch.get())])?;
            Ok(Applied::Done)
        };
        self.engine.write(Effort::durable(OPERATION), advance).await
    }

    async fn finish_job(&self, epoch: Epoch, id: JobId) -> Result<Applied> {
        const OPERATION: &str = "finish_job";
        let finish = move |tx: &mut Tx<'_>| {
            if let Some(refused) = fenced(tx, OPERATION, epoch, id)? {
                return Ok(refused);
            }
            tx.sql("DELETE FROM jobs WHERE id = ?1")?.execute([id.as_bytes()])?;
            Ok(Applied::Done)
        };
        self.engine.write(Effort::durable(OPERATION), finish).await
    }
}

fn of_subject(
    connection: &Connection,
    kind: JobKind,
    subject: &str,
) -> rusqlite::Result<Option<StoredJob>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE kind = ?1 AND subject = ?2");
    let mut find = connection.prepare_cached(&sql)?;
    find.query_row([word(kind).as_str(), subject], StoredJob::of).optional()
}

fn insert(tx: &mut Tx<'_>, job: &Job) -> Worked<bool> {
    if let Some(held) = of_subject(tx.connection, job.kind, &job.subject)? {
        // One that nobody would ever do holds nothing.
        if !held.is_damaged() {
            return Ok(false);
        }
        tx.sql("DELETE FROM jobs WHERE id = ?1")?.execute([&held.id])?;
    }
    let mut insert = tx.sql(
        "INSERT INTO jobs (id, kind, subject, cursor, epoch, due, created) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    insert.execute(params![
        job.id.as_bytes(),
        word(job.kind),
        job.subject,
        job.cursor,
        count(job.epoch.get()),
        time(job.due),
        time(job.created_at),
    ])?;
    Ok(true)
}

/// Why a job cannot be written under this epoch.
fn fenced(
    tx: &Tx<'_>,
    operation: &'static str,
    epoch: Epoch,
    id: JobId,
) -> Worked<Option<Applied>> {
    let mut find = tx.sql("SELECT epoch FROM jobs WHERE id = ?1")?;
    let stored: Option<i64> = find.query_row([id.as_bytes()], |row| row.get(0)).optional()?;
    match stored {
        None => Ok(Some(Applied::Missing)),
        Some(stored) if stored > count(epoch.get()) => {
            let epoch = read_epoch(stored)
                .map_err(|why| unreadable_record(operation, RecordName::Job(id), why))?;
            Ok(Some(Applied::Fenced { epoch }))
        }
        Some(_) => Ok(None),
    }
}
