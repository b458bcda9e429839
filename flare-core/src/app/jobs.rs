//! The long work that is asked for, and how far it has come.

use super::flare::Flare;
use crate::error::Result;
use crate::model::{BackfillProgress, Job, JobId, JobKind, NodeId, Timestamp};
use crate::pipeline::jobs::backfill;
use crate::port::{Listing, Page};

/// A stored job, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobReport {
    /// What it is known by.
    pub id: JobId,
    /// What kind of work.
    pub kind: JobKind,
    /// What it works on, in the kind's own words: the id of a subscription or resource, mostly.
    pub subject: String,
    /// When it was asked for.
    pub since: Timestamp,
    /// When it is gone on with. While a node is at it: when another one may take it, if that node says no more.
    pub due: Timestamp,
    /// How far it has come, where it is known.
    pub progress: Option<BackfillProgress>,
    /// The node that is at it, if it is the one that answers: others do not say.
    pub node: Option<NodeId>,
}

impl JobReport {
    fn of(job: Job, node: Option<NodeId>) -> Self {
        let progress = backfill::progress_of(&job);
        let Job { id, kind, subject, due, created_at, .. } = job;
        // One that is due whatever the clocks say is so since it was asked for.
        let due = due.max(created_at);
        Self { id, kind, subject, since: created_at, due, progress, node }
    }
}

impl Flare {
    /// Lists the long work that is stored, oldest first: backfills and resyncs, for a day after they are
    /// done too, removals, and what comes round for ever.
    pub async fn jobs(&self, page: Page) -> Result<Listing<JobReport>> {
        let context = self.context();
        let listing = context.repository.list_jobs(page).await?;
        listing.unreadable.iter().for_each(|it| context.note_unreadable(it));
        let me = self.member().node();
        let at = *context.job_at_work.borrow();
        Ok(listing.map(|job| {
            let node = me.filter(|_| at == Some(job.id));
            JobReport::of(job, node)
        }))
    }
}
