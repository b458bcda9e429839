//! Takes documents and one partition; gives every subscription in it a row that wants them, then
//! wakes the lanes. Idempotent, unfenced: may run anywhere, twice, late.

use std::collections::{BTreeMap, BTreeSet};

use super::batch::batches;
use super::context::Context;
use super::partition::{answers_of, group};
use super::task::Task;
use crate::error::Result;
use crate::model::{
    DocumentKey, DocumentUrl, LaneId, PartitionId, ResourceId, Spread, SubscriptionStatus, Version,
};
use crate::port::{ClosePartition, Member};

/// Works on a batch of spread tasks; one answer per task.
pub(crate) async fn spread_tasks(context: &Context, tasks: Vec<Task>) -> Vec<Result<()>> {
    let (groups, answers) = group(&tasks, |task| match task {
        Task::Spread { resource, partition, documents } => {
            Some(((*resource, *partition), documents.as_slice()))
        }
        _ => None,
    });
    let mut outcome = Vec::with_capacity(groups.len());
    for ((resource, partition), documents) in groups {
        let done = one_partition(context, resource, partition, documents).await;
        outcome.push(((resource, partition), done));
    }
    answers_of(answers, &outcome, "spread")
}

async fn one_partition(
    context: &Context,
    resource: ResourceId,
    partition: PartitionId,
    documents: BTreeMap<DocumentUrl, Version>,
) -> Result<()> {
    spread(context, resource, partition, &documents).await?;
    let close = |(url, version): (DocumentUrl, Version)| ClosePartition {
        key: DocumentKey::new(resource, url),
        version,
        partition,
    };
    for closes in batches(context.batch_limit(), documents.into_iter().map(close)) {
        for closed in context.repository.close_partitions(closes).await {
            closed?;
        }
    }
    Ok(())
}

/// Writes the rows of one partition and wakes their lanes.
pub(super) async fn spread(
    context: &Context,
    resource: ResourceId,
    partition: PartitionId,
    documents: &BTreeMap<DocumentUrl, Version>,
) -> Result<()> {
    let members = context.repository.members(resource, partition).await?;
    let limit = context.batch_limit();
    let mut rows = Vec::with_capacity(limit.min(members.len() * documents.len()));
    for member in &members {
        for (url, version) in documents {
            rows.push(Spread {
                subscription: member.subscription,
                generation: member.generation,
                document: DocumentKey::new(resource, url.clone()),
                wanted: *version,
            });
            if rows.len() == limit {
                context.repository.spread_rows(std::mem::take(&mut rows)).await?;
            }
        }
    }
    if !rows.is_empty() {
        context.repository.spread_rows(rows).await?;
    }
    context.wake(lanes(context, &members, documents)).await
}

/// The lanes that got something to do. One that is not active looks for itself when it becomes so.
fn lanes(
    context: &Context,
    members: &[Member],
    documents: &BTreeMap<DocumentUrl, Version>,
) -> BTreeSet<(LaneId, u32)> {
    let active = members.iter().filter(|member| member.status == SubscriptionStatus::Active);
    active
        .flat_map(|member| {
            let slot = context.slot(member.subscription, member.slot);
            let lane = move |url: &DocumentUrl| {
                (LaneId::new(member.subscription, url.bucket().lane(member.lanes)), slot)
            };
            documents.keys().map(lane)
        })
        .collect()
}
