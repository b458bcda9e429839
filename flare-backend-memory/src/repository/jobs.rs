//! Takes long work; gives it to whoever goes on with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, Epoch, Job, JobId, JobKind, RecordName, Timestamp, WhyUnreadable,
};
use flare_core::port::{JobStore, Listing, Page, Scan};
use futures::StreamExt;
use futures::stream;

use super::MemoryRepository;
use super::spoilt::at_most;
use crate::lock;

#[derive(Debug, Default)]
pub(super) struct Jobs(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    by_id: BTreeMap<JobId, Job>,
    by_subject: HashMap<(JobKind, String), JobId>,
}

#[async_trait]
impl JobStore for MemoryRepository {
    async fn insert_job(&self, job: Job) -> Result<bool> {
        let mut table = lock(&self.jobs.0);
        let subject = (job.kind, job.subject.clone());
        if let Some(held) = table.by_subject.get(&subject).copied() {
            match self.spoilt.why(|| RecordName::Job(held)) {
                Some(WhyUnreadable::Damaged { .. }) => {
                    table.by_id.remove(&held);
                    self.spoilt.forget(|| RecordName::Job(held));
                }
                _ => return Ok(false),
            }
        }
        table.by_subject.insert(subject, job.id);
        table.by_id.insert(job.id, job);
        Ok(true)
    }

    fn due_jobs(&self, due_by: Timestamp, limit: usize) -> Scan<'_, Job> {
        let table = lock(&self.jobs.0);
        let mut due: Vec<Job> =
            table.by_id.values().filter(|job| job.due <= due_by).cloned().collect();
        due.sort_by_key(|job| (job.due, job.id));
        let read = |job: Job| self.spoilt.read("due_jobs", |job| RecordName::Job(job.id), job);
        let due: Vec<Result<Job>> = due.into_iter().map(read).collect();
        stream::iter(at_most(limit, due)).boxed()
    }

    async fn job(&self, kind: JobKind, subject: &str) -> Result<Option<Job>> {
        let table = lock(&self.jobs.0);
        let id = table.by_subject.get(&(kind, subject.to_owned()));
        Ok(id.and_then(|id| table.by_id.get(id)).cloned())
    }

    async fn list_jobs(&self, page: Page) -> Result<Listing<Job>> {
        let table = lock(&self.jobs.0);
        let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
        let some = table.by_id.values().skip(skipped).take(page.limit as usize).cloned();
        let read = |job: Job| self.spoilt.read("list_jobs", |job| RecordName::Job(job.id), job);
        Listing::of_read(some.map(read), table.by_id.len() as u64)
    }

    async fn claim_job(
        &self,
        epoch: Epoch,
        id: JobId,
        due_by: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>> {
        let mut table = lock(&self.jobs.0);
        let found = table.by_id.get_mut(&id);
        let Some(job) = found.filter(|job| job.epoch <= epoch && job.due <= due_by) else {
            return Ok(None);
        };
        (job.epoch, job.due) = (epoch, until);
        Ok(Some(job.clone()))
    }

    async fn advance_job(
        &self,
        epoch: Epoch,
        id: JobId,
        cursor: Option<String>,
        due: Timestamp,
    ) -> Result<Applied> {
        let mut table = lock(&self.jobs.0);
        Ok(match table.by_id.get_mut(&id) {
            None => Applied::Missing,
            Some(job) if job.epoch > epoch => Applied::Fenced { epoch: job.epoch },
            Some(job) => {
                job.epoch = epoch;
                job.cursor = cursor;
                job.due = due;
                Applied::Done
            }
        })
    }

    async fn finish_job(&self, epoch: Epoch, id: JobId) -> Result<Applied> {
        let mut table = lock(&self.jobs.0);
        match table.by_id.get(&id) {
            None => return Ok(Applied::Missing),
            Some(job) if job.epoch > epoch => return Ok(Applied::Fenced { epoch: job.epoch }),
            Some(_) => {}
        }
        if let Some(job) = table.by_id.remove(&id) {
            table.by_subject.remove(&(job.kind, job.subject));
            self.spoilt.forget(|| RecordName::Job(id));
        }
        Ok(Applied::Done)
    }
}
