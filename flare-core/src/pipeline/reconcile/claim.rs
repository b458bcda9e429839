//! Takes the stored job of reconciling; gives it to one node at a time. A node that dies loses it
//! by waiting.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Applied, Epoch, Job, JobId, JobKind};
use crate::pipeline::context::Context;
use crate::pipeline::jobs::{AT_ONCE, ask};

/// What the one job of its kind is about.
const SUBJECT: &str = "documents";
/// How long the claim lasts without a word from its holder, who looks twice in that time.
const LASTS: Duration = Duration::from_secs(10);

/// This node's part in the stored job.
#[derive(Debug)]
pub(super) struct ReconcileClaim<'a> {
    context: &'a Context,
    /// Which job, and the epoch it was taken under: the holder's is the greatest.
    held: Option<(JobId, Epoch)>,
}

impl<'a> ReconcileClaim<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        Self { context, held: None }
    }

    /// Keeps it for another while; tells whether it is still this node's.
    pub(super) async fn keep(&mut self) -> Result<bool> {
        self.store(self.lasts()).await
    }

    /// Takes it, unless another node has it.
    pub(super) async fn take_if_free(&mut self) -> Result<bool> {
        let job = self.job().await?;
        if job.due > self.context.time().await? {
            return Ok(false);
        }
        self.take_job(job).await
    }

    /// Takes it from the node that has it, which learns so by its next write.
    pub(super) async fn take(&mut self) -> Result<bool> {
        let job = self.job().await?;
        self.take_job(job).await
    }

    /// Leaves it to the others. If that cannot be stored the claim lapses by itself.
    pub(super) async fn leave(&mut self) {
        let _ = self.store(Duration::ZERO).await;
        self.held = None;
    }

    async fn take_job(&mut self, job: Job) -> Result<bool> {
        self.held = Some((job.id, self.context.repository.next_epoch().await?.epoch));
        self.keep().await
    }

    async fn store(&mut self, lasts: Duration) -> Result<bool> {
        let Some((id, epoch)) = self.held else { return Ok(false) };
        let due = self.context.time().await? + lasts;
        let applied = self.context.repository.advance_job(epoch, id, None, due).await?;
        if applied != Applied::Done {
            self.held = None;
        }
        Ok(self.held.is_some())
    }

    /// A holder that looks seldom keeps it for as long as it needs to look twice.
    fn lasts(&self) -> Duration {
        LASTS.max(self.context.settings.reconcile_every.saturating_mul(2))
    }

    async fn job(&self) -> Result<Job> {
        let repository = &self.context.repository;
        if let Some(job) = repository.job(JobKind::Reconcile, SUBJECT).await? {
            return Ok(job);
        }
        ask(self.context, JobKind::Reconcile, SUBJECT, AT_ONCE).await?;
        let vanished =
            || Error::new(ErrorKind::Unavailable, "reconcile").with_detail("its job is gone");
        repository.job(JobKind::Reconcile, SUBJECT).await?.ok_or_else(vanished)
    }
}
