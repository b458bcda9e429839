//! Takes the passing of time; gives what has outlived its retention forgotten: details of dead
//! letters, rejects of consumers, tombstones that everybody was told of, and their rows; and what is pending, or waits
//! in queues, of subscriptions that are gone. Comes round again and again, by the rows that are there, in turns that leave others
//! theirs.

mod cursor;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;

use self::cursor::{Cursor, Pass};
use super::held::{ClaimedJob, Ended, Next, TURN};
use super::{queues, remove_if_gone};
use crate::error::Result;
use crate::model::{DocumentKey, RecordName, RowKey, Timestamp, Version};
use crate::pipeline::context::Context;
use crate::port::{DocumentHead, RowRemoval, Scan};

/// What the job that does this works on; there is one.
pub(super) const SUBJECT: &str = "retention";
/// Tombstones that are looked at together; those of one time always are.
const PAGE: usize = 100;

/// Has a turn at expiry.
///
/// Tombstones go in two passes. The first removes settled rows; the second, once no spread task of
/// that time lives any more, the tombstones that have no row. In between a late task may have made a
/// row anew, which could never be settled if its document were gone.
pub(super) async fn expire(held: &mut ClaimedJob<'_>) -> Result<Next, Ended> {
    let settings = &held.context().settings;
    let mut cursor = match Cursor::read(held.job().cursor.as_deref()) {
        Some(cursor) => cursor,
        None => {
            let died = held.context().now() - settings.dead_letter_retention;
            let repository = &held.context().repository;
            if !held.drain(|limit| repository.drop_dead_letters(died, limit)).await? {
                return Ok(Next::GoOn);
            }
            if !drop_rejects(held, died).await? {
                return Ok(Next::GoOn);
            }
            if !trim_audit(held).await? {
                return Ok(Next::GoOn);
            }
            clear_strays(held).await?;
            queues::clear_strays(held).await?;
            Cursor::first(held.context().now() - settings.tombstone_retention)
        }
    };
    let context = held.context();
    let scan = context.repository.tombstones(cursor.after, cursor.until);
    let mut pages = Pages { context, scan, ahead: None };
    let mut left = TURN;
    loop {
        let page = pages.next().await?;
        let Some(last) = page.last().map(|tombstone| tombstone.updated_at) else {
            return Ok(end_of(&cursor, held));
        };
        match cursor.pass {
            Pass::First => {
                cursor.row = clear_rows(held, page, cursor.row.take(), &mut left).await?;
                if cursor.row.is_some() {
                    return Ok(go_on(&cursor));
                }
            }
            Pass::Second => remove_bare(held, page, &mut left).await?,
        }
        cursor.after = Some(last);
        if left == 0 {
            return Ok(go_on(&cursor));
        }
    }
}

/// Forgets what was done long ago; tells whether all of it is forgotten, or the turn is over.
async fn trim_audit(held: &mut ClaimedJob<'_>) -> Result<bool, Ended> {
    for _ in 0..TURN {
        if held.context().audit.trim().await? {
            return Ok(true);
        }
        held.keep().await?;
    }
    Ok(false)
}

/// Has what is pending removed of subscriptions that are gone: a worker that was frozen inside a spread's write for
/// longer than any task lives makes rows that no lane works, and that would count for ever.
async fn clear_strays(held: &mut ClaimedJob<'_>) -> Result<(), Ended> {
    let context = held.context();
    let mut each = context.repository.pending_each();
    let mut looked_at = 0;
    while let Some(found) = each.next().await {
        let Some((id, _)) = context.if_readable(found)? else { continue };
        remove_if_gone(context, id).await?;
        looked_at += 1;
        if looked_at % context.batch_limit() == 0 {
            held.keep().await?;
        }
    }
    Ok(())
}

/// Forgets rejects of consumers from before then; tells whether all are forgotten, or the turn is over.
async fn drop_rejects(held: &mut ClaimedJob<'_>, before: Timestamp) -> Result<bool, Ended> {
    let context = held.context();
    let mut consumers = context.repository.scan_consumers(None);
    while let Some(consumer) = consumers.next().await {
        let Some(consumer) = context.if_readable(consumer)? else { continue };
        let expire = |limit| context.repository.expire_rejects(consumer.id, before, limit);
        if !held.drain(expire).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Others have their turn; then it goes on from here.
fn go_on(cursor: &Cursor) -> Next {
    Next::Later { cursor: Some(cursor.to_string()), after: Duration::ZERO }
}

/// What comes after the last tombstone of a pass.
fn end_of(cursor: &Cursor, held: &ClaimedJob<'_>) -> Next {
    let settings = &held.context().settings;
    match cursor.pass {
        Pass::First if cursor.after.is_some() => {
            let second = Cursor::second(cursor.until).to_string();
            Next::Later { cursor: Some(second), after: settings.task_lifetime }
        }
        _ => Next::Later { cursor: None, after: settings.expire_every },
    }
}

/// Tombstones, earliest first.
struct Pages<'a> {
    context: &'a Context,
    scan: Scan<'a, DocumentHead>,
    /// Read already, and of the next page.
    ahead: Option<DocumentHead>,
}

impl Pages<'_> {
    /// The next ones, and all that are as old as the last of them.
    async fn next(&mut self) -> Result<Vec<DocumentHead>> {
        let mut page: Vec<DocumentHead> = self.ahead.take().into_iter().collect();
        while let Some(next) = self.scan.next().await {
            let Some(next) = self.context.if_readable(next)? else { continue };
            let as_old = page.last().is_some_and(|last| last.updated_at == next.updated_at);
            if page.len() >= PAGE && !as_old {
                self.ahead = Some(next);
                break;
            }
            page.push(next);
        }
        Ok(page)
    }
}

/// Removes the settled rows of tombstones, after one of them; gives where to go on if the turn ends
/// before they do.
async fn clear_rows(
    held: &mut ClaimedJob<'_>,
    mut tombstones: Vec<DocumentHead>,
    mut after: Option<RowKey>,
    left: &mut usize,
) -> Result<Option<RowKey>, Ended> {
    let context = held.context();
    let limit = context.batch_limit();
    // In the order of their rows, so that one row tells which of them are done with.
    tombstones.sort_by(|a, b| a.key.url.cmp(&b.key.url));
    let versions: BTreeMap<&DocumentKey, Version> =
        tombstones.iter().map(|tombstone| (&tombstone.key, tombstone.version)).collect();
    for tombstones in tombstones.chunks(limit) {
        let keys: Vec<DocumentKey> = tombstones.iter().map(|it| it.key.clone()).collect();
        loop {
            let rows = context.repository.rows_of(keys.clone(), after.clone(), limit).await?;
            let last = context.last_row_of(&rows).filter(|_| rows.total >= limit as u64);
            let old = rows.items.into_iter().filter_map(|row| {
                let version = versions.get(&row.document)?;
                Some((row.key, *version))
            });
            let old: Vec<(RowKey, Version)> = old.collect();
            if !old.is_empty() {
                let removals = context.repository.remove_settled_rows(old).await;
                removals.into_iter().collect::<Result<Vec<RowRemoval>>>()?;
            }
            held.keep().await?;
            *left = left.saturating_sub(1);
            match last {
                Some(last) if *left == 0 => return Ok(Some(last)),
                Some(last) => after = Some(last),
                None => break,
            }
        }
    }
    Ok(None)
}

/// Removes those of these tombstones that have no row at all.
async fn remove_bare(
    held: &mut ClaimedJob<'_>,
    tombstones: Vec<DocumentHead>,
    left: &mut usize,
) -> Result<(), Ended> {
    let context = held.context();
    let limit = context.batch_limit();
    for tombstones in tombstones.chunks(limit) {
        let mut bare: BTreeSet<DocumentKey> = tombstones.iter().map(|it| it.key.clone()).collect();
        loop {
            let rows = context.repository.rows_of(bare.iter().cloned().collect(), None, limit);
            let rows = rows.await?;
            for row in &rows.items {
                bare.remove(&row.document);
            }
            for row in &rows.unreadable {
                // It may have something left to tell.
                if let RecordName::Row(row) = &row.record {
                    bare.retain(|document| document.url != row.url);
                }
            }
            held.keep().await?;
            *left = left.saturating_sub(1);
            // A full answer may be about the first of them alone.
            if rows.total < limit as u64 {
                break;
            }
        }
        for tombstone in tombstones.iter().filter(|tombstone| bare.contains(&tombstone.key)) {
            context.repository.remove_document(&tombstone.key, tombstone.version).await?;
        }
        held.keep().await?;
    }
    Ok(())
}
