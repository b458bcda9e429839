//! Takes long work; gives it to whoever goes on with it.

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{Applied, Epoch, Job, JobId, JobKind, RecordName, Timestamp};
use flare_core::port::{JobStore, Listing, Page, Scan};
use uuid::Uuid;

use super::PostgresRepository;
use crate::codec::job::StoredJob;
use crate::codec::{count, counted, id as uuid, limit, offset, time, word};
use crate::connection::Value;
use crate::fault::Worked;
use crate::pages::{ScanPage, pages};

const OF_SUBJECT: &str = "SELECT id, kind, subject, cursor, epoch, due, created, needs FROM flare.jobs \
     WHERE kind = $1 AND subject = $2";

#[async_trait]
impl JobStore for PostgresRepository {
    async fn insert_job(&self, job: Job) -> Result<bool> {
        self.database.attempts("insert_job", || self.insert_a_job(&job)).await
    }

    fn due_jobs(&self, due_by: Timestamp, most: usize) -> Scan<'_, Job> {
        let start = (i64::MIN, Uuid::nil(), most);
        pages(start, move |place| {
            let read = move || self.page_of_jobs(due_by, place);
            Box::pin(async move { self.database.attempts("due_jobs", read).await })
        })
    }

    async fn job(&self, kind: JobKind, subject: &str) -> Result<Option<Job>> {
        const OPERATION: &str = "job";
        self.database
            .attempts(OPERATION, || async {
                let found =
                    self.database.one(OPERATION, OF_SUBJECT, &[&word(kind), &subject]).await?;
                let found = found.as_ref().map(StoredJob::of).transpose()?;
                Ok(found.map(|found| found.job(OPERATION)).transpose()?)
            })
            .await
    }

    async fn list_jobs(&self, page: Page) -> Result<Listing<Job>> {
        const OPERATION: &str = "list_jobs";
        const COUNT: &str = "SELECT count(*) FROM flare.jobs";
        const LIST: &str = "SELECT id, kind, subject, cursor, epoch, due, created, needs FROM flare.jobs \
             ORDER BY id LIMIT $1 OFFSET $2";
        self.database
            .attempts(OPERATION, || async {
                let (most, skipped) = (i64::from(page.limit), offset(page.offset));
                let mut session = self.database.session(OPERATION).await?;
                let (total, rows) = session.both((COUNT, &[]), (LIST, &[&most, &skipped])).await?;
                let found = rows.iter().map(StoredJob::of);
                let found = found.collect::<std::result::Result<Vec<_>, _>>()?;
                let total = counted(total.first())?;
                Ok(Listing::of_read(found.iter().map(|found| found.job(OPERATION)), total)?)
            })
            .await
    }

    async fn claim_job(
        &self,
        epoch: Epoch,
        id: JobId,
        due_by: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>> {
        const OPERATION: &str = "claim_job";
        const SQL: &str = "UPDATE flare.jobs SET due = $2, epoch = $3 \
             WHERE id = $1 AND epoch <= $3 AND due <= $4 \
             RETURNING id, kind, subject, cursor, epoch, due, created, needs";
        self.database
            .attempts(OPERATION, || async {
                let (id, epoch) = (uuid(id.as_bytes()), count(epoch.get()));
                let claimed = self
                    .database
                    .one(OPERATION, SQL, &[&id, &time(until), &epoch, &time(due_by)])
                    .await?;
                let claimed = claimed.as_ref().map(StoredJob::of).transpose()?;
                Ok(claimed.map(|claimed| claimed.job(OPERATION)).transpose()?)
            })
            .await
    }

    async fn advance_job(
        &self,
        epoch: Epoch,
        id: JobId,
        cursor: Option<String>,
        due: Timestamp,
    ) -> Result<Applied> {
        const SQL: &str = "WITH there AS (SELECT id, epoch FROM flare.jobs WHERE id = $1 FOR UPDATE), \
             done AS (UPDATE flare.jobs j SET cursor = $3, due = $4, epoch = $2 FROM there t \
                 WHERE j.id = t.id AND t.epoch <= $2 RETURNING 1) \
             SELECT epoch, EXISTS (SELECT 1 FROM done) FROM there";
        let (number, due) = (uuid(id.as_bytes()), time(due));
        let values: [&dyn Value; 4] = [&number, &count(epoch.get()), &cursor, &due];
        self.fenced("advance_job", &RecordName::Job(id), SQL, &values).await
    }

    async fn finish_job(&self, epoch: Epoch, id: JobId) -> Result<Applied> {
        const SQL: &str = "WITH there AS (SELECT id, epoch FROM flare.jobs WHERE id = $1 FOR UPDATE), \
             done AS (DELETE FROM flare.jobs j USING there t WHERE j.id = t.id AND t.epoch <= $2 RETURNING 1) \
             SELECT epoch, EXISTS (SELECT 1 FROM done) FROM there";
        let number = uuid(id.as_bytes());
        let values: [&dyn Value; 2] = [&number, &count(epoch.get())];
        self.fenced("finish_job", &RecordName::Job(id), SQL, &values).await
    }
}

impl PostgresRepository {
    async fn insert_a_job(&self, job: &Job) -> Worked<bool> {
        const OPERATION: &str = "insert_job";
        const REMOVE: &str = "DELETE FROM flare.jobs WHERE id = $1";
        const INSERT: &str = "INSERT INTO flare.jobs (id, kind, subject, cursor, epoch, due, created) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let kind = word(job.kind);
        let mut session = self.database.session(OPERATION).await?;
        let held = session.begin(OF_SUBJECT, &[&kind, &job.subject]).await?;
        if let Some(held) = held.first() {
            let held = StoredJob::of(held)?;
            // One that nobody would ever do holds nothing.
            if !held.is_damaged() {
                session.roll_back().await?;
                return Ok(false);
            }
            session.query(REMOVE, &[&held.id]).await?;
        }
        let (id, epoch) = (uuid(job.id.as_bytes()), count(job.epoch.get()));
        let (due, created) = (time(job.due), time(job.created_at));
        let values: [&dyn Value; 7] =
            [&id, &kind, &job.subject, &job.cursor, &epoch, &due, &created];
        session.finish(INSERT, &values).await?;
        Ok(true)
    }

    async fn page_of_jobs(
        &self,
        due_by: Timestamp,
        (due, id, left): (i64, Uuid, usize),
    ) -> Worked<ScanPage<Job, (i64, Uuid, usize)>> {
        const OPERATION: &str = "due_jobs";
        const SQL: &str = "SELECT id, kind, subject, cursor, epoch, due, created, needs FROM flare.jobs \
             WHERE (due, id) > ($1, $2) AND due <= $3 ORDER BY due, id LIMIT $4";
        let values: [&dyn Value; 4] = [&due, &id, &time(due_by), &limit(left)];
        let found = self.database.all(OPERATION, SQL, &values).await?;
        let found = found.iter().map(StoredJob::of).collect::<std::result::Result<Vec<_>, _>>()?;
        let read: Vec<Result<Job>> = found.iter().map(|it| it.job(OPERATION)).collect();
        // Those that cannot be read take no place.
        let more = left - read.iter().filter(|read| read.is_ok()).count();
        let last = found.last().filter(|_| found.len() == left && more > 0);
        let next = last.map(|last| {
            let (due, id) = last.place();
            (due, id, more)
        });
        Ok((read, next))
    }
}
