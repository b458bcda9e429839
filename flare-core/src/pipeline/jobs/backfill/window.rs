//! The rows of a backfill that are pending: kept in memory while its job stays with this runtime, looked
//! for in the store when it comes from another one, or when what was kept may be wrong.

use std::collections::{BTreeSet, HashMap};

use super::pace::{BackfillPace, MOST};
use crate::error::Result;
use crate::model::{
    BucketRange, DocumentUrl, Epoch, JobId, Round, Row, RowKey, SubscriptionId, Timestamp,
};
use crate::pipeline::batch::batches;
use crate::pipeline::context::Context;
use crate::pipeline::jobs::held::{ClaimedJob, Ended};
use crate::port::PendingQuery;

/// Pending rows read at a time when those of a job are looked for among them.
const PAGE: usize = 10_000;
/// Jobs that are remembered; beyond it their rows are looked for again.
const REMEMBERED: usize = 1_024;

/// What this runtime knows of the jobs it works.
#[derive(Debug, Default)]
pub(in crate::pipeline::jobs) struct BackfillWindows {
    jobs: HashMap<JobId, BackfillWindow>,
}

/// The rows of one job that were pending when they were looked at last.
#[derive(Debug)]
pub(super) struct BackfillWindow {
    /// What the job was held under when they were looked for. A runtime that has it in between has it
    /// under a greater one, and so has this one from then on: under the same one no other made rows.
    epoch: Epoch,
    round: Round,
    rows: BTreeSet<RowKey>,
    /// There are more than these, which are looked for once these are told.
    more: bool,
    /// They were looked for in the store in this turn.
    found: bool,
    pace: BackfillPace,
}

impl BackfillWindows {
    /// What is known of a job; what may have been done of it without this runtime's knowledge is looked
    /// for. It has to be [kept](Self::keep) after a turn that went well: how far one came that failed
    /// is unknown.
    pub(super) async fn take(
        &mut self,
        held: &mut ClaimedJob<'_>,
        subscription: SubscriptionId,
        round: Round,
    ) -> Result<BackfillWindow, Ended> {
        let epoch = held.epoch();
        let kept = self.jobs.remove(&held.job().id).filter(|kept| kept.epoch == epoch);
        let mut window = match kept {
            Some(mut kept) if !kept.more || !kept.rows.is_empty() => {
                kept.found = false;
                return Ok(kept);
            }
            Some(kept) => kept,
            None => BackfillWindow::new(epoch, round),
        };
        window.search(held, subscription).await?;
        Ok(window)
    }

    /// Remembers what is known of a job after a turn.
    pub(super) fn keep(&mut self, job: JobId, window: BackfillWindow) {
        if self.jobs.len() >= REMEMBERED {
            self.jobs.clear();
        }
        self.jobs.insert(job, window);
    }

    /// Nothing more is to be known of a job.
    pub(super) fn close(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}

impl BackfillWindow {
    fn new(epoch: Epoch, round: Round) -> Self {
        let (rows, pace) = (BTreeSet::new(), BackfillPace::default());
        Self { epoch, round, rows, more: false, found: false, pace }
    }

    /// Looks for the job's rows among all that are pending, part by part, so that however many these are
    /// few are in memory. Finds also rows of the job that were told and have changed since: they cannot be
    /// told apart, and are waited for once.
    async fn search(
        &mut self,
        held: &mut ClaimedJob<'_>,
        subscription: SubscriptionId,
    ) -> Result<(), Ended> {
        let context = held.context();
        let count = context.repository.count_pending(Some(subscription)).await?.count;
        // Buckets are hashes: a part that is half full on average is hardly ever full.
        let mut parts = u16::try_from(count / (PAGE as u64 / 2) + 1).unwrap_or(u16::MAX);
        (self.found, self.more) = (true, false);
        let mut part = 0;
        while part < parts && !self.more {
            let query = PendingQuery::new(subscription, PAGE);
            let query = query.buckets(BucketRange::of_lane(part, parts));
            let pending = context.all_readable(context.repository.pending_rows(query)).await?;
            if pending.len() >= PAGE && parts < u16::MAX {
                // More came meanwhile. What was found is found again.
                (part, parts) = (0, parts.saturating_mul(2));
                continue;
            }
            let of_job = pending.into_iter().filter(|row| row.round == self.round);
            self.rows.extend(of_job.map(|row| row.key));
            while self.rows.len() > MOST {
                self.rows.pop_last();
                self.more = true;
            }
            part += 1;
            if part < parts {
                held.keep().await?;
            }
        }
        Ok(())
    }

    /// Looks which rows are still pending; tells how many.
    pub(super) async fn look(&mut self, context: &Context) -> Result<usize> {
        let mut told = 0;
        for keys in batches(context.batch_limit(), std::mem::take(&mut self.rows)) {
            let ask = |keys| context.repository.rows(keys);
            let found = context.each_readable(keys, ask).await?;
            // One that cannot be read is nothing to wait for.
            let rows = found.into_iter().filter_map(|row| row.ok().flatten());
            // The client took nothing of a row that is gone, or that was never told in this round.
            for row in rows.filter(|row: &Row| row.round == self.round) {
                match row.is_pending() {
                    true => _ = self.rows.insert(row.key),
                    false => told += 1,
                }
            }
        }
        self.pace.took(told, context.now());
        Ok(self.rows.len())
    }

    /// Whether no row of the job is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && !self.more
    }

    /// Whether the rows were looked for in the store in this turn.
    pub(super) const fn is_found(&self) -> bool {
        self.found
    }

    /// The documents whose rows were pending when they were looked at last.
    pub(super) fn urls(&self) -> impl Iterator<Item = &DocumentUrl> {
        self.rows.iter().map(|row| &row.url)
    }

    /// How many rows may be pending; never fewer than are.
    pub(super) fn allowed(&mut self, now: Timestamp, at_least: usize) -> usize {
        self.pace.allowed(now, at_least).max(self.rows.len())
    }

    pub(super) fn add(&mut self, rows: impl IntoIterator<Item = RowKey>) {
        self.rows.extend(rows);
    }
}
