//! Takes a backfill's or resync's place among the documents; gives what is to be spread of the next ones,
//! as many as there is room for, and moves the place behind them. What the client holds already, and what
//! the filter refuses, takes no room.

use futures::StreamExt;

use super::cursor::BackfillCursor;
use super::filtering;
use crate::error::Result;
use crate::model::{JobKind, Row, Spread, SpreadCause, Subscription, Timestamp};
use crate::pipeline::context::Context;
use crate::port::DocumentHead;

/// Documents looked at in a turn, however few of them are wanted.
const LOOKED_AT: usize = 1_000;
/// Documents looked at together at least, however little room there is: the client may hold them all.
const TOGETHER: usize = 100;

/// What is to be spread next.
pub(super) async fn next(
    context: &Context,
    kind: JobKind,
    subscription: &Subscription,
    cursor: &mut BackfillCursor,
    room: usize,
) -> Result<Vec<Spread>> {
    let filter = filtering::BackfillFilter::of(context, subscription).await?;
    // A filter has to be shown what is in them, and no store tells how large that is.
    let together = match &filter {
        Some(_) => filtering::READ,
        None => room.max(TOGETHER).min(context.batch_limit()),
    };
    let mut all = context.repository.scan_documents(subscription.resource, cursor.after.clone());
    let (mut chosen, mut looked_at) = (Vec::new(), 0);
    while chosen.len() < room && looked_at < LOOKED_AT && !cursor.walked {
        let mut heads: Vec<DocumentHead> = Vec::with_capacity(together);
        let (mut unreadable, mut ended) = (0, false);
        while heads.len() + unreadable < together && !ended {
            match all.next().await {
                // One that cannot be read is passed over, and noted.
                Some(read) => match context.if_readable(read)? {
                    Some(head) => heads.push(head),
                    None => unreadable += 1,
                },
                None => ended = true,
            }
        }
        looked_at += heads.len() + unreadable;
        let wanted = heads.iter().filter(|head| cursor.wants(&head.key.url));
        let (id, generation) = (subscription.id, subscription.generation);
        let spread = |head: &DocumentHead| {
            let spread = Spread::new(id, generation, head.key.clone(), head.version);
            spread.because(cause(kind, cursor))
        };
        let mut spreads: Vec<Spread> = wanted.map(spread).collect();
        if let Some(filter) = &filter {
            spreads = filter.select(spreads).await?;
        }
        spreads = needed(context, spreads).await?;
        let space = room - chosen.len();
        if spreads.len() > space {
            // The others are looked at again.
            spreads.truncate(space);
            let last = spreads.last().map(|spread| &spread.document);
            let passed = heads.iter().position(|head| Some(&head.key) == last);
            heads.truncate(passed.map_or(0, |passed| passed + 1));
            (unreadable, ended) = (0, false);
        }
        cursor.scanned += (heads.len() + unreadable) as u64;
        cursor.after = heads.pop().map(|head| head.key.url).or(cursor.after.take());
        cursor.walked = ended;
        chosen.append(&mut spreads);
    }
    Ok(chosen)
}

/// Why rows are made, where the filter wants the document.
fn cause(kind: JobKind, cursor: &BackfillCursor) -> SpreadCause {
    match kind {
        JobKind::Resync => SpreadCause::Resync(cursor.round),
        _ => SpreadCause::Backfill(cursor.round),
    }
}

/// Those that have something told, in their order. What happens to a row between this look and its
/// spread is found by the spread itself.
async fn needed(context: &Context, spreads: Vec<Spread>) -> Result<Vec<Spread>> {
    if spreads.is_empty() {
        return Ok(spreads);
    }
    let keys = spreads.iter().map(Spread::row_key).collect();
    let rows = context.each_readable(keys, |keys| context.repository.rows(keys)).await?;
    let both = spreads.into_iter().zip(rows);
    // One that cannot be read may need it.
    let needs = |(spread, row): (Spread, Result<Option<Row>>)| {
        row.map_or(true, |row| is_needed(&spread, row)).then_some(spread)
    };
    Ok(both.filter_map(needs).collect())
}

/// Whether a spread has something told that was not, or is not yet.
fn is_needed(spread: &Spread, row: Option<Row>) -> bool {
    let Some(row) = row else { return spread.makes_row() };
    let mut then = row.clone();
    then.spread(spread, Timestamp::EPOCH);
    then.wanted > row.wanted || then.round == spread.round() && then.is_pending()
}
