//! The rows of a backfill that are pending, as far as this runtime knows; found in the store again by a
//! runtime that goes on with another's job.

use std::collections::HashMap;

use super::pace::{BackfillPace, MOST};
use crate::error::Result;
use crate::model::{JobId, Round, Row, RowKey, SubscriptionId, Timestamp};
use crate::pipeline::batch::batches;
use crate::pipeline::context::Context;
use crate::port::PendingQuery;

/// How far to look for rows of a job among all that are pending, when another's job is gone on with.
const SEARCHED: usize = 10 * MOST;
/// Jobs that are remembered; beyond it their rows are looked for again.
const REMEMBERED: usize = 1_024;

/// What this runtime knows of the jobs it works.
#[derive(Debug, Default)]
pub(in crate::pipeline::jobs) struct BackfillWindows {
    jobs: HashMap<JobId, BackfillWindow>,
}

/// The rows of one job that were pending when they were looked at last.
#[derive(Debug, Default)]
pub(super) struct BackfillWindow {
    rows: Vec<RowKey>,
    pace: BackfillPace,
}

impl BackfillWindows {
    /// What is known of a job; what another runtime did of it is looked for.
    pub(super) async fn open(
        &mut self,
        context: &Context,
        job: JobId,
        subscription: SubscriptionId,
        round: Round,
    ) -> Result<&mut BackfillWindow> {
        if !self.jobs.contains_key(&job) {
            if self.jobs.len() >= REMEMBERED {
                self.jobs.clear();
            }
            let pending =
                context.repository.pending_rows(PendingQuery::new(subscription, SEARCHED));
            let pending = context.all_readable(pending).await?;
            let of_job = pending.into_iter().filter(|row| row.round == round);
            let rows = of_job.map(|row| row.key).collect();
            self.jobs.insert(job, BackfillWindow { rows, pace: BackfillPace::default() });
        }
        Ok(self.jobs.entry(job).or_default())
    }

    /// Nothing more is to be known of a job.
    pub(super) fn close(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}

impl BackfillWindow {
    /// Looks which rows are still pending; tells how many.
    pub(super) async fn look(&mut self, context: &Context, round: Round) -> Result<usize> {
        let before = self.rows.len();
        let mut left = Vec::with_capacity(before);
        for keys in batches(context.batch_limit(), std::mem::take(&mut self.rows)) {
            let ask = |keys| context.repository.rows(keys);
            let found = context.each_readable(keys, ask).await;
            let pending = |row: &Row| row.round == round && row.is_pending();
            // One that cannot be read is nothing to wait for.
            let rows = found?.into_iter().filter_map(|row| row.ok().flatten());
            left.extend(rows.filter(pending).map(|row| row.key));
        }
        self.rows = left;
        self.pace.took(before - self.rows.len(), context.now());
        Ok(self.rows.len())
    }

    /// How many rows may be pending; never fewer than are.
    pub(super) fn allowed(&mut self, now: Timestamp, concurrency: usize) -> usize {
        self.pace.allowed(now, concurrency).max(self.rows.len())
    }

    pub(super) fn add(&mut self, rows: impl IntoIterator<Item = RowKey>) {
        self.rows.extend(rows);
    }
}
