//! Takes a job that is due; gives it to this runtime alone for a while, again and again as the
//! work goes on. A runtime that is gone for longer than that loses it, and learns so by its next write.

use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Applied, Epoch, Invalid, Job, JobId};
use crate::pipeline::context::Context;

/// How long a job is its taker's without a word; far beyond what one batch takes.
const CLAIM: Duration = Duration::from_secs(60);
/// Batches in one turn at a job, so that a long one does not keep the others waiting.
pub(super) const TURN: usize = 50;
/// The cursor of a job that waits for, or makes, its second pass.
const AGAIN: &str = "again";

/// How a turn at a job ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing is left to do.
    Done,
    /// Others have their turn; it goes on from where it is.
    GoOn,
    /// It goes on from `cursor` after this time.
    Later { cursor: Option<String>, after: Duration },
}

/// Why a turn at a job broke off.
#[derive(Debug)]
pub(super) enum Ended {
    /// Another runtime has it, or has finished it.
    Taken,
    /// Something failed; it is tried again.
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A job that is this runtime's for now.
#[derive(Debug)]
pub(super) struct ClaimedJob<'a> {
    context: &'a Context,
    /// What it writes under.
    epoch: Epoch,
    /// As it was stored last.
    job: Job,
}

impl Drop for ClaimedJob<'_> {
    fn drop(&mut self) {
        self.context.job_at_work.send_replace(None);
    }
}

impl<'a> ClaimedJob<'a> {
    /// Takes a job that is due, as it is stored by now: the runtime that had it meanwhile may have gone on with
    /// it. From now on others leave it alone for a while.
    pub(super) async fn take(context: &'a Context, epoch: Epoch, id: JobId) -> Result<Self, Ended> {
        let now = context.now();
        let claimed = context.repository.claim_job(epoch, id, now, now + CLAIM).await?;
        // A store that never waits would let no other task run in between.
        tokio::task::yield_now().await;
        let job = claimed.ok_or(Ended::Taken)?;
        context.job_at_work.send_replace(Some(job.id));
        Ok(Self { context, epoch, job })
    }

    pub(super) fn context(&self) -> &'a Context {
        self.context
    }

    /// What it is held under. Another runtime can have it only under a greater one, and this one again
    /// only under one that is greater still.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// What the job works on, as its kind writes it.
    pub(super) fn subject<T: FromStr<Err = Invalid>>(&self) -> Result<T> {
        self.job.subject.parse().map_err(|invalid: Invalid| {
            let detail = format!("{:?} {}", self.job.subject, invalid.reason());
            Error::new(ErrorKind::Corrupt, "job").with_detail(detail)
        })
    }

    /// Keeps the job for another while.
    pub(super) async fn keep(&mut self) -> Result<(), Ended> {
        self.keep_at(self.job.cursor.clone()).await
    }

    /// Notes how far it has come, and keeps the job for another while.
    pub(super) async fn keep_at(&mut self, cursor: Option<String>) -> Result<(), Ended> {
        self.store(cursor, CLAIM).await?;
        // A store that never waits would let no other task run in between.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Leaves the job for later, to anybody.
    pub(super) async fn leave(
        mut self,
        cursor: Option<String>,
        after: Duration,
    ) -> Result<(), Ended> {
        self.store(cursor, after).await
    }

    /// Forgets the job: it is done.
    pub(super) async fn finish(self) -> Result<(), Ended> {
        let finished = self.context.repository.finish_job(self.epoch, self.job.id);
        match finished.await? {
            Applied::Done => Ok(()),
            _ => Err(Ended::Taken),
        }
    }

    async fn store(&mut self, cursor: Option<String>, after: Duration) -> Result<(), Ended> {
        let due = self.context.now() + after;
        let (epoch, id) = (self.epoch, self.job.id);
        match self.context.repository.advance_job(epoch, id, cursor.clone(), due).await? {
            Applied::Done => {
                self.job.cursor = cursor;
                Ok(())
            }
            _ => Err(Ended::Taken),
        }
    }

    /// Removes something batch by batch, until a batch is empty or the turn is over; tells
    /// whether nothing is left.
    pub(super) async fn drain<F>(&mut self, remove: impl Fn(usize) -> F) -> Result<bool, Ended>
    where
        F: Future<Output = Result<u64>>,
    {
        let limit = self.context.batch_limit();
        for _ in 0..TURN {
            if remove(limit).await? == 0 {
                return Ok(true);
            }
            self.keep().await?;
        }
        Ok(false)
    }

    /// After a first pass: the wait for the second one. What a task wrote that was under way in
    /// the first is found by the second, when no such task lives any more.
    pub(super) fn again(&self) -> Option<Next> {
        let after = self.context.settings.task_lifetime;
        let first = self.job.cursor.as_deref() != Some(AGAIN);
        first.then(|| Next::Later { cursor: Some(AGAIN.to_owned()), after })
    }
}
