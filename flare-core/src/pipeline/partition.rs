//! Takes documents that changed; gives each partition of their resource the task to spread them.
//! With one partition it spreads in place, in one call of the store if nothing stands against that; with
//! none there is no client to tell.

use std::collections::BTreeMap;

use super::load::{Documents, take};
use super::outstanding::Outstanding;
use super::spread::{Note, dispatched, spread};
use super::spread_all::{Spreading, spread_to_all};
use super::turn::Turn;
use crate::error::Result;
use crate::model::{DocumentKey, DocumentUrl, PartitionId, Version};
use crate::port::task::{DOCUMENTS_PER_TASK, DocumentVersion, Task};
use crate::port::{OpenPartitions, Opened, Outgoing, QueueName};

/// Works on documents of one resource until all are done or the turn is over, and leaves the rest.
pub(super) async fn partition(
    turn: &Turn<'_>,
    known: &mut Outstanding,
    documents: &mut Documents,
) -> Result<()> {
    if turn.context.spreads_at_once(turn.resource)
        && spread_to_all(turn, documents).await? == Spreading::Done
    {
        return Ok(());
    }
    known.keep(turn.context, None, documents).await?;
    // Read after the documents were written: every subscription of before that is in it.
    let partitions = turn.context.repository.partitions(turn.resource).await?;
    match partitions.as_slice() {
        [] => dispatched(turn, std::mem::take(documents)).await,
        [only] => spread(turn, known, *only, Note::Dispatch, documents).await,
        _ => {
            while !documents.is_empty() && !turn.is_over() {
                let began = turn.context.clock.monotonic();
                let some = take(documents, turn.context.batch_limit());
                let count = some.len();
                open(turn, &partitions, some).await?;
                turn.did(count, began);
            }
            Ok(())
        }
    }
}

async fn open(turn: &Turn<'_>, partitions: &[PartitionId], documents: Documents) -> Result<()> {
    let (context, resource) = (turn.context, turn.resource);
    let open = |(url, version): (&DocumentUrl, &Version)| OpenPartitions {
        key: DocumentKey::new(resource, url.clone()),
        version: *version,
        partitions: partitions.to_vec(),
    };
    let opened = context.repository.open_partitions(documents.iter().map(open).collect()).await;
    turn.advances();
    let mut by_partition: BTreeMap<PartitionId, Vec<DocumentVersion>> = BTreeMap::new();
    let mut failed = None;
    for ((url, version), opened) in documents.into_iter().zip(opened) {
        match opened {
            Ok(Opened::Open(left)) => {
                for partition in left {
                    let document = DocumentVersion { url: url.clone(), version };
                    by_partition.entry(partition).or_default().push(document);
                }
            }
            // Done already, or a newer version was announced.
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
    }
    let mut messages = Vec::with_capacity(by_partition.len());
    for (partition, documents) in by_partition {
        for documents in documents.chunks(DOCUMENTS_PER_TASK) {
            let task = Task::Spread { resource, partition, documents: documents.to_vec() };
            messages.push(Outgoing::new(task.encode()?));
        }
    }
    context.announce(&QueueName::Spread, messages).await?;
    turn.advances();
    failed.map_or(Ok(()), Err)
}
