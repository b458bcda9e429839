//! Takes long work that was asked for and stored; gives it done, bit by bit, by whichever runtime
//! has it at the moment. One facility for all kinds of it:
//!
//! - `runner`: looks for jobs that are due, takes one, has a turn at it, stores how far it came.
//! - `held`: a job while it is this runtime's.
//! - `subscription`, `resource`, `expire`, `queues`, `backfill`: the kinds.
//!
//! A job may be dropped at any await and taken up again by anybody: every kind repeats safely
//! what it may have done already.

pub(crate) mod backfill;
mod expire;
mod held;
mod queues;
mod resource;
mod runner;
mod subscription;

use super::context::Context;
use crate::error::Result;
use crate::model::{Job, JobKind, SubscriptionId, Timestamp};

pub(crate) use queues::align_later;
pub(crate) use runner::run;

/// Due whatever the clocks say.
pub(crate) const AT_ONCE: Timestamp = Timestamp::EPOCH;

/// Asks for long work, unless it is asked for already; tells whether it was not.
pub(crate) async fn ask(
    context: &Context,
    kind: JobKind,
    subject: impl Into<String>,
    due: Timestamp,
) -> Result<bool> {
    ask_from(context, kind, subject, None, due).await
}

/// Asks for what is left of a subscription to be removed, if it is gone.
async fn remove_if_gone(context: &Context, id: SubscriptionId) -> Result<()> {
    // One that cannot be read is there all the same.
    if let Some(None) = context.if_readable(context.repository.subscription(id).await)? {
        ask(context, JobKind::RemoveSubscription, id.to_string(), AT_ONCE).await?;
    }
    Ok(())
}

/// Asks for long work that begins at `cursor`.
async fn ask_from(
    context: &Context,
    kind: JobKind,
    subject: impl Into<String>,
    cursor: Option<String>,
    due: Timestamp,
) -> Result<bool> {
    let now = context.time().await?;
    let mut job = Job::new(context.ids.next(now).into(), kind, subject, now);
    (job.cursor, job.due) = (cursor, due);
    let asked = context.repository.insert_job(job).await?;
    context.jobs_asked.notify_one();
    Ok(asked)
}
