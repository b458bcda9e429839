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
mod window;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;

use self::cursor::BackfillCursor;
use self::window::BackfillWindow;
pub(super) use self::window::BackfillWindows;
use super::held::{ClaimedJob, Ended, Next};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    Applied, BackfillProgress, DocumentUrl, Job, JobKind, LaneId, Round, RowKey, Spread,
    SpreadCause, Subscription, SubscriptionId, SubscriptionStatus,
};
use crate::pipeline::context::Context;
use crate::port::DocumentHead;

/// How soon to see what the client took meanwhile.
const SOON: Duration = Duration::from_millis(50);
/// How soon to see whether a subscription that is held goes on.
const HELD: Duration = Duration::from_secs(1);
/// How long it is shown that a job is done.
const SHOWN: Duration = Duration::from_secs(24 * 60 * 60);
/// Documents looked at in a turn, however few of them are wanted.
const LOOKED_AT: usize = 1_000;

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
    match context.repository.job(kind, &id.to_string()).await? {
        Some(job) if !BackfillCursor::decode(&job)?.done => forget(context, &job).await,
        _ => Ok(false),
    }
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

async fn forget(context: &Context, job: &Job) -> Result<bool> {
    // Whoever has it learns by its next write that it is gone.
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
        // Stored before any row is told in it: whoever goes on does so in the same round.
        cursor.round = Round::new(context.repository.next_epoch().await?.epoch.get());
        cursor.total = context.repository.count_documents(subscription.resource).await?;
        held.keep_at(Some(cursor.encode()?)).await?;
    }
    let window = windows.open(context, held.job().id, id, cursor.round).await?;
    let pending = window.look(context, cursor.round).await?;
    if cursor.walked {
        if pending > 0 {
            return Ok(Next::Later { cursor: held.job().cursor.clone(), after: SOON });
        }
        windows.close(held.job().id);
        cursor.done = true;
        return Ok(Next::Later { cursor: Some(cursor.encode()?), after: SHOWN });
    }
    let room = window.allowed(context.now(), concurrency(context, &subscription)) - pending;
    if room > 0 {
        let kind = held.job().kind;
        let went_on = walk(context, kind, &subscription, &mut cursor, window, room).await?;
        if !went_on {
            return Ok(Next::Later { cursor: held.job().cursor.clone(), after: SOON });
        }
    }
    Ok(Next::Later { cursor: Some(cursor.encode()?), after: SOON })
}

/// How many requests a subscription's client may have in flight.
fn concurrency(context: &Context, subscription: &Subscription) -> usize {
    let own = subscription.spec.delivery().concurrency();
    own.unwrap_or(context.settings.concurrency) as usize
}

/// Spreads the next documents, as many as there is room for; tells whether it did, under settings that
/// have not changed meanwhile.
async fn walk(
    context: &Context,
    kind: JobKind,
    subscription: &Subscription,
    cursor: &mut BackfillCursor,
    window: &mut BackfillWindow,
    room: usize,
) -> Result<bool> {
    let room = room.min(context.batch_limit());
    let resource = filtering::resource(context, subscription).await?;
    let mut rows = Vec::with_capacity(room);
    let mut looked_at = 0;
    {
        let after = cursor.after.clone();
        let mut all = context.repository.scan_documents(subscription.resource, after);
        while looked_at < LOOKED_AT && rows.len() < room && !cursor.walked {
            // A filter is asked about some at a time, as it has to be shown what is in them.
            let most = match &resource {
                Some(_) => filtering::READ.min(room - rows.len()),
                None => room - rows.len(),
            };
            let mut heads = Vec::with_capacity(most);
            while looked_at < LOOKED_AT && heads.len() < most {
                let Some(read) = all.next().await else {
                    cursor.walked = true;
                    break;
                };
                looked_at += 1;
                // One that cannot be read is passed over, and noted.
                let Some(head) = context.if_readable(read)? else { continue };
                cursor.after = Some(head.key.url.clone());
                if cursor.wants(&head.key.url) {
                    heads.push(head);
                }
            }
            let cause = cause(kind, cursor.round);
            rows.extend(match &resource {
                Some(resource) => {
                    filtering::select(context, subscription, resource, heads, cause).await?
                }
                None => heads.into_iter().map(|head| (head, cause)).collect(),
            });
        }
    }
    // Read after the documents: those that were accepted after a change of the settings are told under it.
    let newest = context.repository.subscription(subscription.id).await?;
    if newest.is_none_or(|newest| newest.generation != subscription.generation) {
        return Ok(false);
    }
    spread(context, subscription, &rows).await?;
    window.add(rows.into_iter().map(|(head, _)| RowKey::new(subscription.id, head.key.url)));
    cursor.scanned += looked_at as u64;
    Ok(true)
}

/// Why rows are made, where the filter wants the document.
fn cause(kind: JobKind, round: Round) -> SpreadCause {
    match kind {
        JobKind::Resync => SpreadCause::Resync(round),
        _ => SpreadCause::Backfill(round),
    }
}

async fn spread(
    context: &Context,
    subscription: &Subscription,
    rows: &[(DocumentHead, SpreadCause)],
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (id, generation) = (subscription.id, subscription.generation);
    let spread = |(head, cause): &(DocumentHead, SpreadCause)| {
        Spread::new(id, generation, head.key.clone(), head.version).because(*cause)
    };
    context.repository.spread_rows(rows.iter().map(spread).collect()).await?;
    context.wake(lanes(context, subscription, rows.iter().map(|(head, _)| &head.key.url))).await
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
