//! Takes a subscription and the documents of its resource that are there; gives it a row for each of
//! them, so that its client is told: all it does not hold (backfill), or all there are (resync). Few of
//! these rows are pending at a time, so that a live change waits for few of them.
//!
//! - Rows before cursor: what a crash falls between is spread again, which the job's round makes harmless.
//! - What changes meanwhile has a spread of its own, for the subscription was there before the job.
//! - What is deleted meanwhile is found so by the lane, which reads the newest version.
//! - What the filter refuses gets no row: it is asked before. Should the document change after that, then see
//!   above; should the filter, then that acts from the document's next change on. A resync has the client
//!   told that it is gone, if there is a row.

mod cursor;
mod filtering;
mod pace;
mod walk;
mod window;

use std::collections::BTreeSet;
use std::time::Duration;

use self::cursor::BackfillCursor;
pub(super) use self::window::BackfillWindows;
use super::held::{ClaimedJob, Ended, Next};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    Applied, BackfillProgress, DocumentUrl, Job, JobKind, LaneId, Round, Spread, Subscription,
    SubscriptionId, SubscriptionStatus, Timestamp,
};
use crate::pipeline::context::Context;

/// How soon to see what the client took meanwhile.
const SOON: Duration = Duration::from_millis(50);
/// How soon to see whether a subscription that is held goes on.
const HELD: Duration = Duration::from_secs(1);
/// Jobs that are read, at most, when those under way are counted.
const COUNTED: usize = 10_000;
/// How long it is shown that a job is done.
const SHOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// Asks for the documents that are there to be told to a subscription's client; of a resync perhaps
/// only those whose URL begins with `prefix`. One that is under way for the same ones goes on.
pub(crate) async fn begin(
    context: &Context,
    kind: JobKind,
    id: SubscriptionId,
    prefix: Option<String>,
) -> Result<()> {
    const OPERATION: &str = "backfill";
    let subject = id.to_string();
    let cursor = BackfillCursor::new(prefix);
    loop {
        let text = Some(cursor.encode()?);
        if super::ask_from(context, kind, subject.clone(), text, super::AT_ONCE).await? {
            return Ok(());
        }
        let Some(job) = context.repository.job(kind, &subject).await? else { continue };
        let there = BackfillCursor::decode(&job)?;
        if there.done {
            forget(context, &job).await?;
        } else if there.prefix == cursor.prefix {
            return Ok(());
        } else {
            let error = Error::new(ErrorKind::Conflict, OPERATION).with_field("prefix");
            return Err(error.with_detail("a resync of other documents is under way"));
        }
    }
}

/// Ends a job that is under way; what it has made pending is told all the same. Tells whether there was
/// one.
pub(crate) async fn cancel(context: &Context, kind: JobKind, id: SubscriptionId) -> Result<bool> {
    let subject = id.to_string();
    while let Some(job) = context.repository.job(kind, &subject).await? {
        if BackfillCursor::decode(&job)?.done {
            return Ok(false);
        }
        // Another runtime may have taken it just then, under a greater epoch: then once more, under one that is
        // greater still.
        if forget(context, &job).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How far a job is, if there is one or was lately.
pub(crate) async fn progress(
    context: &Context,
    kind: JobKind,
    id: SubscriptionId,
) -> Result<Option<BackfillProgress>> {
    let job = context.repository.job(kind, &id.to_string()).await?;
    job.map(|job| BackfillCursor::decode(&job).map(|cursor| cursor.progress())).transpose()
}

/// How far a job is, if it is one that says so in a way this version knows.
pub(crate) fn progress_of(job: &Job) -> Option<BackfillProgress> {
    let says = matches!(job.kind, JobKind::Backfill | JobKind::Resync);
    let cursor = says.then(|| BackfillCursor::decode(job)).and_then(Result::ok);
    cursor.map(|cursor| cursor.progress())
}

/// How many backfills and resyncs are not done yet, of all subscriptions.
pub(crate) async fn under_way(context: &Context) -> Result<u64> {
    // Those that are done are due last.
    let jobs = context.repository.due_jobs(Timestamp::MAX, COUNTED);
    let jobs = context.all_readable(jobs).await?;
    let ours = |job: &&Job| matches!(job.kind, JobKind::Backfill | JobKind::Resync);
    // One whose cursor is damaged fails at every turn, and is never done.
    let goes_on = |job: &&Job| BackfillCursor::decode(job).map_or(true, |cursor| !cursor.done);
    Ok(jobs.iter().filter(ours).filter(goes_on).count() as u64)
}

async fn forget(context: &Context, job: &Job) -> Result<bool> {
    // A runtime that works it learns by its next write that it is gone.
    let epoch = context.repository.next_epoch().await?.epoch;
    Ok(context.repository.finish_job(epoch, job.id).await? == Applied::Done)
}

/// Has a turn at telling a subscription's client of what is there.
pub(super) async fn turn(
    held: &mut ClaimedJob<'_>,
    windows: &mut BackfillWindows,
) -> Result<Next, Ended> {
    let id: SubscriptionId = held.subject()?;
    let context = held.context();
    let mut cursor = BackfillCursor::decode(held.job())?;
    let found = context.repository.subscription(id).await?;
    let there = found.filter(|it| it.status != SubscriptionStatus::Deleting);
    let Some(subscription) = there.filter(|_| !cursor.done) else {
        windows.close(held.job().id);
        return Ok(Next::Done);
    };
    if subscription.status != SubscriptionStatus::Active {
        return Ok(Next::Later { cursor: held.job().cursor.clone(), after: HELD });
    }
    if cursor.round == Round::ZERO {
        // Stored before any row is told in it: the runtime that goes on does so in the same round.
        cursor.round = Round::new(context.repository.next_epoch().await?.epoch.get());
        cursor.total = context.repository.count_documents(subscription.resource).await?;
        held.keep_at(Some(cursor.encode()?)).await?;
    }
    let mut window = windows.take(held, id, cursor.round).await?;
    if window.is_found() {
        // The runtime that made these rows may have ended before it told their lanes.
        context.wake(lanes(context, &subscription, window.urls())).await?;
    }
    let pending = window.look(context).await?;
    let mut next = held.job().cursor.clone();
    if cursor.walked {
        if window.is_empty() {
            cursor.done = true;
            return Ok(Next::Later { cursor: Some(cursor.encode()?), after: SHOWN });
        }
    } else {
        let at_least = at_least_pending(context, &subscription);
        let room = window.allowed(context.now(), at_least).saturating_sub(pending);
        let went_on = match room {
            0 => None,
            _ => walk(context, held.job().kind, &subscription, &mut cursor, room).await?,
        };
        if let Some(spread) = went_on {
            window.add(spread.into_iter().map(|it| it.row_key()));
            next = Some(cursor.encode()?);
        }
    }
    windows.keep(held.job().id, window);
    Ok(Next::Later { cursor: next, after: SOON })
}

/// How many rows may be pending of a client of which nothing is known: as many as it may have requests in flight, or
/// as fill one for each lane. Fewer than that would wait for others to go with, each time as long as they may.
fn at_least_pending(context: &Context, subscription: &Subscription) -> usize {
    let delivery = subscription.spec.delivery();
    let requests = delivery.concurrency().unwrap_or(context.settings.concurrency) as usize;
    let filled = delivery.batch().map_or(0, |batch| batch.max() as usize);
    requests.max(filled.saturating_mul(delivery.lanes() as usize))
}

/// Spreads the next documents, as many as there is room for; gives what it spread, or nothing if the
/// settings changed meanwhile.
async fn walk(
    context: &Context,
    kind: JobKind,
    subscription: &Subscription,
    cursor: &mut BackfillCursor,
    room: usize,
) -> Result<Option<Vec<Spread>>> {
    let room = room.min(context.batch_limit());
    let spreads = walk::next(context, kind, subscription, cursor, room).await?;
    // Read after the documents: those that were accepted after a change of the settings are told under it.
    let newest = context.repository.subscription(subscription.id).await?;
    if newest.is_none_or(|newest| newest.generation != subscription.generation) {
        return Ok(None);
    }
    if !spreads.is_empty() {
        context.repository.spread_rows(spreads.clone()).await?;
        let urls = spreads.iter().map(|spread| &spread.document.url);
        context.wake(lanes(context, subscription, urls)).await?;
    }
    Ok(Some(spreads))
}

/// The lanes that got something to do.
fn lanes<'a>(
    context: &Context,
    subscription: &Subscription,
    urls: impl Iterator<Item = &'a DocumentUrl>,
) -> BTreeSet<(LaneId, u32)> {
    let (slot, lanes) = (context.slot_of(subscription), subscription.spec.delivery().lanes());
    urls.map(|url| (LaneId::new(subscription.id, url.bucket().lane(lanes)), slot)).collect()
}
