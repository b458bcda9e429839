//! Takes a lane; gives its next rows that are due, each with the newest version of its document,
//! and when to look again.

use std::collections::HashMap;
use std::sync::Arc;

use super::content::Reserved;
use super::{Lane, orphans};
use crate::error::Result;
use crate::model::subscription::Mode;
use crate::model::{
    BucketRange, Document, DocumentKey, DocumentUrl, Filter, FilterVerdict, Row, RowEffect,
    Subscription, Timestamp, Version,
};
use crate::pipeline::batch::batches;
use crate::pipeline::reading::{ReadDocuments, read_within};
use crate::port::{PendingQuery, RowUpdate};

/// Documents being worked on, each with the newest version it was seen to want meanwhile.
pub(super) type Busy = HashMap<DocumentUrl, Option<Version>>;

/// Rows that may be sent.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Rows that are due, with their documents and what the filter says of them.
    pub(super) due: Vec<(Row, Document, FilterVerdict)>,
    /// The mode they were looked for in.
    pub(super) mode: Mode,
    /// The filter that was asked, if there is one.
    pub(super) filter: Option<Filter>,
    /// When the next row is due that is not yet.
    pub(super) next_due: Option<Timestamp>,
    /// There may be more that is due.
    pub(super) more: bool,
    /// Rows left out because they are being worked on, and what they want.
    pub(super) passed_over: Vec<(DocumentUrl, Version)>,
    /// Rows were left out because their document is not there yet: look again soon.
    pub(super) behind: bool,
    /// The size of the largest document that was read, if any was.
    pub(super) largest: Option<usize>,
    /// The subscription as it is now, if it had to be read again; `None` inside if it is gone.
    pub(super) reread: Option<Option<Arc<Subscription>>>,
}

/// Loads as many rows as there is room for, beside those being worked on.
pub(super) async fn load(lane: Lane, busy: Busy, room: Reserved) -> Result<Load> {
    let repository = &lane.context.repository;
    let lanes = lane.subscription.spec.delivery().lanes();
    // No more than a batch, unless so many are being worked on that little else would be seen.
    let most = lane.context.batch_limit().max(busy.len() * 2);
    let wanted = (busy.len() + room.documents).min(most);
    let query = PendingQuery::new(lane.id.subscription, wanted)
        .buckets(BucketRange::of_lane(lane.id.shard, lanes))
        // A client that is told nothing by itself is told what it asked for.
        .demanded(lane.subscription.spec.mode() == Mode::Passive);
    let rows: Vec<Row> = lane.context.all_readable(repository.pending_rows(query)).await?;
    let now = lane.context.now();

    let mode = lane.subscription.spec.mode();
    let mut load = Load { more: rows.len() == wanted, mode, ..Load::default() };
    let mut due = Vec::with_capacity(rows.len());
    for row in rows {
        if row.due > now {
            load.next_due.get_or_insert(row.due);
            load.more = false;
        } else if busy.contains_key(&row.key.url) {
            load.passed_over.push((row.key.url, row.wanted));
        } else {
            due.push(row);
        }
    }
    if due.is_empty() {
        return Ok(load);
    }

    let keys: Vec<DocumentKey> = due.iter().map(|row| row.document.clone()).collect();
    let read = read_within(&lane.context, &keys, &room).await?;
    let ReadDocuments { found: documents, largest } = read;
    load.largest = Some(largest);
    // There was no room for more of them.
    load.more |= documents.len() < due.len();
    let generation = lane.subscription.generation;
    let mut reread = due.iter().any(|row| row.generation > generation);
    let (mut found, mut unreadable, mut orphans) = (Vec::new(), Vec::new(), Vec::new());
    for (row, document) in due.into_iter().zip(documents) {
        let Ok(document) = document else {
            unreadable.push(row);
            continue;
        };
        match document {
            Some(document) if document.version >= row.wanted => {
                // Accepted, perhaps, after a pause this lane has not heard of yet.
                reread |= document.version > row.wanted;
                found.push((row, document));
            }
            // Its retention is over: what is left to tell needs no content.
            None if row.wanted.is_gone() => {
                let expired = Document::new(row.document.clone(), row.wanted, row.since);
                found.push((row, expired));
            }
            None if orphans::is_orphan(&lane, &row, now) => orphans.push(row),
            // What we want must be there: our own store is behind, which costs no attempt.
            _ => load.behind = true,
        }
    }
    // Something may have been spread again.
    load.behind |= !orphans.is_empty();
    orphans::forget(&lane, orphans).await?;
    if reread {
        let subscription = repository.subscription(lane.id.subscription).await;
        // One that cannot be read any more is as good as gone: nothing is sent for it.
        let subscription = lane.context.if_readable(subscription)?.flatten();
        load.reread = Some(subscription.map(Arc::new));
    }
    judge(&lane, found, &mut load, &mut unreadable);
    put_off(&lane, unreadable).await?;
    Ok(load)
}

/// Asks the filter of the subscription, as it is now, about each document. Rows that it cannot be asked
/// about are put off like those whose documents cannot be read.
fn judge(lane: &Lane, found: Vec<(Row, Document)>, load: &mut Load, unreadable: &mut Vec<Row>) {
    let subscription = match &load.reread {
        Some(Some(newer)) => Arc::clone(newer),
        Some(None) => return,
        None => Arc::clone(&lane.subscription),
    };
    load.filter = subscription.spec.filter().cloned();
    for (row, document) in found {
        match lane.context.verdict(&subscription, &lane.resource, &document) {
            Some(verdict) => load.due.push((row, document, verdict)),
            None => unreadable.push(row),
        }
    }
}

/// Lets rows wait whose documents cannot be read, so that they take no place of others. It is no
/// fault of the client's: no attempt is used up.
async fn put_off(lane: &Lane, rows: Vec<Row>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (context, takeover) = (&lane.context, &lane.term.takeover);
    let due = context.now() + context.settings.rederive_every;
    let update = |row: Row| {
        let present = takeover.holding(row.present, row.epoch, row.since);
        let Row { attempts, first_failure, round, .. } = row;
        let version = row.attempted.unwrap_or(row.wanted);
        let effect = RowEffect::Retry { version, present, attempts, due, first_failure };
        RowUpdate { key: row.key, round, effect }
    };
    for updates in batches(context.batch_limit(), rows.into_iter().map(update)) {
        for applied in lane.groups.rows.store(updates).await {
            applied?;
        }
    }
    Ok(())
}
