//! Takes long work; gives it to whoever goes on with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{Applied, Epoch, Job, JobId, JobKind, Timestamp};
use flare_core::port::JobStore;

use super::MemoryRepository;
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
        if table.by_subject.contains_key(&subject) {
            return Ok(false);
        }
        table.by_subject.insert(subject, job.id);
        table.by_id.insert(job.id, job);
        Ok(true)
    }

    async fn due_jobs(&self, due_by: Timestamp, limit: usize) -> Result<Vec<Job>> {
        let table = lock(&self.jobs.0);
        let mut due: Vec<Job> =
            table.by_id.values().filter(|job| job.due <= due_by).cloned().collect();
        due.sort_by_key(|job| (job.due, job.id));
        due.truncate(limit);
        Ok(due)
    }

    async fn job(&self, kind: JobKind, subject: &str) -> Result<Option<Job>> {
        let table = lock(&self.jobs.0);
        let id = table.by_subject.get(&(kind, subject.to_owned()));
        Ok(id.and_then(|id| table.by_id.get(id)).cloned())
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
        }
        Ok(Applied::Done)
    }
}
