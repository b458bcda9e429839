//! Takes documents and one partition; gives every subscription in it a row that wants them, then
//! wakes the lanes. Idempotent, unfenced: may run anywhere, twice, late.

mod filtering;

use std::collections::BTreeSet;

pub(crate) use self::filtering::MemberFilters;
use self::filtering::Selection;
use super::batch::batches;
use super::context::Context;
use super::load::{Documents, TaskLoad, take_from};
use super::outstanding::Outstanding;
use super::turn::Turn;
use crate::error::Result;
use crate::model::{
    DocumentKey, DocumentUrl, LaneId, PartitionId, Spread, SubscriptionStatus, Version,
};
use crate::port::{ClosePartition, Member};

/// Batches of rows after which lanes are woken, documents marked, and others may have their turn.
pub(super) const BATCHES: usize = 16;

/// Works on a resource's documents, partition by partition, until all are done or the turn is over,
/// and leaves the rest.
pub(super) async fn spread_load(
    turn: &Turn<'_>,
    known: &mut Outstanding,
    load: &mut TaskLoad,
) -> Result<()> {
    while !turn.is_over()
        && let Some((partition, mut documents)) = load.take_part(turn.any_of(load.parts()))
    {
        let Some(number) = partition else { continue };
        let spread = spread(turn, known, number, Note::Close, &mut documents).await;
        load.put_back(partition, documents);
        spread?;
    }
    Ok(())
}

/// How it is noted that documents have been spread to a partition.
#[derive(Debug, Clone, Copy)]
pub(super) enum Note {
    /// It is the only one: they are dispatched.
    Dispatch,
    /// It is one of several: they are no longer open to it.
    Close,
}

/// Writes the rows of one partition, wakes their lanes and notes it, some documents at a time; leaves
/// those that it had no time for.
pub(super) async fn spread(
    turn: &Turn<'_>,
    known: &mut Outstanding,
    partition: PartitionId,
    note: Note,
    documents: &mut Documents,
) -> Result<()> {
    let (context, resource) = (turn.context, turn.resource);
    let owed = match note {
        Note::Dispatch => None,
        Note::Close => Some(partition),
    };
    let (mut members, mut first) = (None, None);
    loop {
        known.keep(context, owed, documents).await?;
        if documents.is_empty() || turn.is_over() {
            return Ok(());
        }
        let began = context.clock.monotonic();
        let members = match &mut members {
            Some(members) => members,
            // After the documents were written: every subscription of before that is in it.
            None => members.insert(context.repository.members(resource, partition).await?),
        };
        let rows = BATCHES.saturating_mul(context.batch_limit());
        let count = (rows / members.len().max(1)).max(1);
        if documents.len() > count && first.is_none() {
            first = documents.keys().nth(turn.any_of(documents.len())).cloned();
        }
        let some = take_from(documents, first.as_ref(), count);
        let chosen = Selection::of(turn, members, &some).await?;
        write(turn, members, &some, &chosen).await?;
        context.wake(lanes(context, members, &some, &chosen)).await?;
        let told = members.iter().enumerate();
        let told = told.filter(|(at, member)| chosen.concerns(*at, member));
        context.bells.ring(told.map(|(_, member)| member.subscription));
        let count = some.len();
        match note {
            Note::Dispatch => dispatched(turn, some).await?,
            Note::Close => closed(turn, partition, some).await?,
        }
        turn.did(count, began);
    }
}

/// Notes that documents have been spread to all partitions.
pub(super) async fn dispatched(turn: &Turn<'_>, documents: Documents) -> Result<()> {
    let key = |url: DocumentUrl| DocumentKey::new(turn.resource, url);
    let versions = documents.into_iter().map(|(url, version)| (key(url), version));
    for versions in batches(turn.context.batch_limit(), versions) {
        for marked in turn.context.repository.mark_dispatched(versions).await {
            marked?;
        }
        turn.advances();
    }
    Ok(())
}

/// Notes that documents have been spread to one of several partitions.
async fn closed(turn: &Turn<'_>, partition: PartitionId, documents: Documents) -> Result<()> {
    let close = |(url, version): (DocumentUrl, Version)| ClosePartition {
        key: DocumentKey::new(turn.resource, url),
        version,
        partition,
    };
    for closes in batches(turn.context.batch_limit(), documents.into_iter().map(close)) {
        for closed in turn.context.repository.close_partitions(closes).await {
            closed?;
        }
        turn.advances();
    }
    Ok(())
}

async fn write(
    turn: &Turn<'_>,
    members: &[Member],
    documents: &Documents,
    chosen: &Selection,
) -> Result<()> {
    let (repository, limit) = (&turn.context.repository, turn.context.batch_limit());
    let mut rows = Vec::with_capacity(limit.min(members.len() * documents.len()));
    for (at, member) in members.iter().enumerate() {
        for (number, (url, version)) in documents.iter().enumerate() {
            let Some(cause) = chosen.cause((at, member), number) else { continue };
            if rows.len() == limit {
                repository.spread_rows(std::mem::take(&mut rows)).await?;
                turn.advances();
                // A store that never waits would let no other task run in between.
                tokio::task::yield_now().await;
            }
            let document = DocumentKey::new(turn.resource, url.clone());
            let row = Spread::new(member.subscription, member.generation, document, *version);
            rows.push(row.because(cause));
        }
    }
    if !rows.is_empty() {
        repository.spread_rows(rows).await?;
        turn.advances();
    }
    Ok(())
}

/// The lanes that got something to do. One that is not active looks for itself when it becomes so.
fn lanes(
    context: &Context,
    members: &[Member],
    documents: &Documents,
    chosen: &Selection,
) -> BTreeSet<(LaneId, u32)> {
    let active = members.iter().enumerate();
    let active = active.filter(|(_, member)| member.status == SubscriptionStatus::Active);
    active
        .flat_map(|(at, member)| {
            let slot = context.slot(member.subscription, member.slot);
            let lane = move |(number, url): (usize, &DocumentUrl)| {
                chosen.cause((at, member), number)?;
                Some((LaneId::new(member.subscription, url.bucket().lane(member.lanes)), slot))
            };
            documents.keys().enumerate().filter_map(lane)
        })
        .collect()
}
