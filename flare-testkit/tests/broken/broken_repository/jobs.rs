//! Breaks RJ1 to RJ7.

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{Applied, Epoch, Job, JobId, JobKind, Timestamp};
use flare_core::port::{JobStore, Listing, Page, Scan};
use futures::{StreamExt, TryStreamExt};

use super::{BrokenRepository, Fault, changed, one_more};

#[async_trait]
impl JobStore for BrokenRepository {
    async fn insert_job(&self, job: Job) -> Result<bool> {
        if self.has(Fault::DamagedJobsHoldTheirPlace) {
            let jobs: Vec<_> = self.inner.due_jobs(Timestamp::MAX, 1_000).collect().await;
            let held = jobs.iter().any(|read| read.is_err());
            if held && !job.subject.is_empty() {
                return Ok(false);
            }
        }
        let stored = self.inner.insert_job(job).await?;
        Ok(stored || self.has(Fault::InsertingJobsAlwaysSaysYes))
    }

    fn due_jobs(&self, due_by: Timestamp, limit: usize) -> Scan<'_, Job> {
        let limit = one_more(limit, self.has(Fault::OneDueJobMore));
        let jobs = self.inner.due_jobs(due_by, limit);
        match self.fault {
            Fault::UnreadableTakesAPlace => jobs.take(limit).boxed(),
            Fault::JobsLatestFirst => changed(jobs, |jobs| jobs.reverse()),
            Fault::DueJobsAreOverdue => {
                changed(jobs, move |jobs| jobs.retain(|job| job.due < due_by))
            }
            _ => jobs,
        }
    }

    async fn job(&self, kind: JobKind, subject: &str) -> Result<Option<Job>> {
        let found = self.inner.job(kind, subject).await?;
        let due = |job: &Job| job.due <= Timestamp::from_unix_seconds(2_000_000_000);
        Ok(found.filter(|job| due(job) || !self.has(Fault::FindsOnlyDueJobs)))
    }

    async fn list_jobs(&self, page: Page) -> Result<Listing<Job>> {
        let mut listing = self.inner.list_jobs(page).await?;
        if self.has(Fault::ListsDueJobsAlone) {
            let due = |job: &Job| job.due <= Timestamp::from_unix_seconds(2_000_000_000);
            listing.items.retain(due);
        }
        if self.has(Fault::JobsListedNewestFirst) {
            listing.items.reverse();
        }
        if self.has(Fault::JobTotalIsOfThePage) {
            listing.total = (listing.items.len() + listing.unreadable.len()) as u64;
        }
        Ok(listing)
    }

    async fn claim_job(
        &self,
        epoch: Epoch,
        id: JobId,
        due_by: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>> {
        let due_by = if self.has(Fault::ClaimsJobsNotDue) { Timestamp::MAX } else { due_by };
        let jobs: Vec<Job> = self.inner.due_jobs(Timestamp::MAX, 1_000).try_collect().await?;
        let claimed = self.inner.claim_job(epoch, id, due_by, until).await?;
        if self.has(Fault::ClaimsJobsAsTheyWere) {
            return Ok(claimed.and(jobs.into_iter().find(|job| job.id == id)));
        }
        Ok(claimed)
    }

    async fn advance_job(
        &self,
        epoch: Epoch,
        id: JobId,
        mut cursor: Option<String>,
        due: Timestamp,
    ) -> Result<Applied> {
        let mut epoch = epoch;
        if self.has(Fault::JobFenceIgnored) {
            let jobs: Vec<Job> = self.inner.due_jobs(Timestamp::MAX, 1_000).try_collect().await?;
            let stored = jobs.iter().find(|job| job.id == id).map(|job| job.epoch);
            epoch = epoch.max(stored.unwrap_or(epoch));
        }
        if self.has(Fault::CursorLost) {
            cursor = None;
        }
        self.inner.advance_job(epoch, id, cursor, due).await
    }

    async fn finish_job(&self, epoch: Epoch, id: JobId) -> Result<Applied> {
        if self.has(Fault::FinishedJobsStay) {
            return self.inner.advance_job(epoch, id, None, Timestamp::MAX).await;
        }
        if self.has(Fault::FinishingIsNotFenced) {
            return self.inner.finish_job(Epoch::new(u64::MAX), id).await;
        }
        self.inner.finish_job(epoch, id).await
    }
}
