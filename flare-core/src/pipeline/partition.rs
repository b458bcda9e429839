//! Takes documents that changed; gives each partition of their resource the task to spread them.
//! With one partition it spreads in place; with none there is nobody to tell.

use std::collections::BTreeMap;

use super::batch::batches;
use super::context::Context;
use super::spread::spread;
use super::task::{DOCUMENTS_PER_TASK, DocumentVersion, Task};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{DocumentKey, DocumentUrl, PartitionId, ResourceId, Version};
use crate::port::{OpenPartitions, Opened, Outgoing, QueueName};

/// Works on a batch of partition tasks; one answer per task.
pub(crate) async fn partition(context: &Context, tasks: Vec<Task>) -> Vec<Result<()>> {
    let (groups, answers) = group(&tasks, |task| match task {
        Task::Partition { resource, documents } => Some((*resource, documents.as_slice())),
        _ => None,
    });
    let mut outcome = Vec::with_capacity(groups.len());
    for (resource, documents) in groups {
        outcome.push((resource, one_resource(context, resource, documents).await));
    }
    answers_of(answers, &outcome, "partition")
}

async fn one_resource(
    context: &Context,
    resource: ResourceId,
    documents: BTreeMap<DocumentUrl, Version>,
) -> Result<()> {
    // Read after the documents were written: whoever subscribed before that is in it.
    let partitions = context.repository.partitions(resource).await?;
    match partitions.as_slice() {
        [] => dispatched(context, resource, &documents).await,
        [only] => {
            spread(context, resource, *only, &documents).await?;
            dispatched(context, resource, &documents).await
        }
        _ => open(context, resource, &partitions, documents).await,
    }
}

async fn dispatched(
    context: &Context,
    resource: ResourceId,
    documents: &BTreeMap<DocumentUrl, Version>,
) -> Result<()> {
    let key = |url: &DocumentUrl| DocumentKey::new(resource, url.clone());
    let versions = documents.iter().map(|(url, version)| (key(url), *version));
    for versions in batches(context.batch_limit(), versions) {
        for marked in context.repository.mark_dispatched(versions).await {
            marked?;
        }
    }
    Ok(())
}

async fn open(
    context: &Context,
    resource: ResourceId,
    partitions: &[PartitionId],
    documents: BTreeMap<DocumentUrl, Version>,
) -> Result<()> {
    let open = |(url, version): (&DocumentUrl, &Version)| OpenPartitions {
        key: DocumentKey::new(resource, url.clone()),
        version: *version,
        partitions: partitions.to_vec(),
    };
    let mut opened = Vec::with_capacity(documents.len());
    for opens in batches(context.batch_limit(), documents.iter().map(open)) {
        opened.extend(context.repository.open_partitions(opens).await);
    }
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
            // Done already, or somebody announced a newer version.
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
    failed.map_or(Ok(()), Err)
}

/// The newest version of each document, by group; and which group each task belongs to.
type Grouped<G> = (BTreeMap<G, BTreeMap<DocumentUrl, Version>>, Vec<Option<G>>);

/// Brings the documents of a batch of tasks together, each once, at its newest version.
pub(super) fn group<G: Ord + Copy>(
    tasks: &[Task],
    parts: impl Fn(&Task) -> Option<(G, &[DocumentVersion])>,
) -> Grouped<G> {
    let mut groups: BTreeMap<G, BTreeMap<DocumentUrl, Version>> = BTreeMap::new();
    let mut members = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some((group, documents)) = parts(task) else {
            members.push(None);
            continue;
        };
        let newest = groups.entry(group).or_default();
        for document in documents {
            let version = newest.entry(document.url.clone()).or_insert(document.version);
            *version = (*version).max(document.version);
        }
        members.push(Some(group));
    }
    (groups, members)
}

/// One answer per task: that of its group.
pub(super) fn answers_of<G: PartialEq>(
    members: Vec<Option<G>>,
    outcomes: &[(G, Result<()>)],
    operation: &'static str,
) -> Vec<Result<()>> {
    let misplaced = || Error::new(ErrorKind::Internal, operation).detail("another stage's task");
    let answer = |member: Option<G>| {
        let member = member.ok_or_else(misplaced)?;
        let outcome = outcomes.iter().find(|(group, _)| *group == member);
        outcome.map_or_else(|| Err(misplaced()), |(_, outcome)| outcome.clone())
    };
    members.into_iter().map(answer).collect()
}
