//! Takes documents from the origin; gives each to the store, which decides whether it changed,
//! and announces what did. Awaits the store; never a client.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tracing::warn;

use super::batch::batches;
use super::context::Context;
use super::meter;
use super::stage::chain;
use super::task::{DOCUMENTS_PER_TASK, DocumentVersion, Task};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    ChangeRule, Content, DocumentChange, DocumentKey, DocumentUrl, Invalid, Resource, ResourceId,
    TraceContext,
};
use crate::port::{DocumentWrite, Outgoing, QueueName, WriteOutcome};

/// One put or delete, as the origin asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) url: String,
    pub(crate) operation: Wish,
    pub(crate) trace: Option<TraceContext>,
}

#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Put(Bytes),
    /// The revision as clients see it, if the origin names one.
    Delete(Option<String>),
}

/// The first stage: bounded by the number of writes under way, so that an origin that is faster
/// than the store is told so.
#[derive(Debug)]
pub(crate) struct Ingest {
    context: Arc<Context>,
    permits: Semaphore,
}

impl Ingest {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let permits = Semaphore::new(context.settings.ingest_limit);
        Self { context, permits }
    }

    /// Stores changes; one answer per change. Once it is stored a change is accepted, even if
    /// announcing it fails: the reconciler finds it.
    pub(crate) async fn accept(
        &self,
        operation: &'static str,
        changes: Vec<Change>,
    ) -> Vec<Result<DocumentChange>> {
        let Ok(_permit) = self.permits.try_acquire() else {
            let busy = Error::new(ErrorKind::Busy, operation)
                .detail("as many puts as allowed are under way (ingest_limit)");
            return changes.iter().map(|_| Err(busy.clone())).collect();
        };
        let mut answers: Vec<Option<Result<DocumentChange>>> = Vec::with_capacity(changes.len());
        let mut writes = Vec::with_capacity(changes.len());
        for prepared in self.prepare(operation, changes).await {
            match prepared {
                Ok(write) => {
                    writes.push((answers.len(), write));
                    answers.push(None);
                }
                Err(error) => answers.push(Some(Err(error))),
            }
        }
        let limit = self.context.batch_limit();
        let mut changed = Vec::new();
        while !writes.is_empty() {
            let rest = writes.split_off(limit.min(writes.len()));
            let (places, batch): (Vec<usize>, Vec<DocumentWrite>) = writes.into_iter().unzip();
            let keys: Vec<DocumentKey> = batch.iter().map(|write| write.key.clone()).collect();
            let outcomes = self.context.repository.write_documents(batch).await;
            for ((place, key), outcome) in places.into_iter().zip(keys).zip(outcomes) {
                if let Ok(outcome) = &outcome {
                    changed.extend(to_announce(key, outcome));
                }
                meter::accepted(&outcome);
                answers[place] = Some(outcome.map(|outcome| outcome.change));
            }
            writes = rest;
        }
        if let Err(error) = announce(&self.context, changed).await {
            warn!(error = %chain(&error), "could not announce changes, the reconciler will");
        }
        let answer = |answer: Option<_>| answer.unwrap_or_else(|| Err(unanswered(operation)));
        answers.into_iter().map(answer).collect()
    }

    /// What is to be written for each change, or why nothing is: all are matched together, and
    /// each fails alone.
    async fn prepare(
        &self,
        operation: &'static str,
        changes: Vec<Change>,
    ) -> Vec<Result<DocumentWrite>> {
        let parse = |change: &Change| DocumentUrl::parse(&change.url);
        let urls: Vec<_> = changes.iter().map(parse).collect();
        let matched = match_all(&self.context, urls.iter().flatten().cloned()).await;
        let mut matched = matched.into_iter();
        let prepare = |(change, url): (Change, std::result::Result<DocumentUrl, Invalid>)| {
            let url = url.map_err(|invalid| Error::invalid(operation, invalid))?;
            let matched = matched.next().unwrap_or_else(|| Err(unanswered(operation)))?;
            let resource = matched.ok_or_else(|| no_resource(operation, &url))?;
            to_write(change, url, &resource).map_err(|invalid| Error::invalid(operation, invalid))
        };
        changes.into_iter().zip(urls).map(prepare).collect()
    }
}

fn to_write(
    change: Change,
    url: DocumentUrl,
    resource: &Resource,
) -> std::result::Result<DocumentWrite, Invalid> {
    let key = DocumentKey::new(resource.id, url);
    let write = match change.operation {
        Wish::Put(body) => {
            let (revision, content) = Content::parse(&resource.change, body)?;
            DocumentWrite::put(key, revision, content)
        }
        Wish::Delete(shown) => {
            let revision = shown.map(|shown| read_revision(&resource.change, &shown));
            DocumentWrite::delete(key, revision.transpose()?)
        }
    };
    Ok(write.trace(change.trace))
}

fn unanswered(operation: &'static str) -> Error {
    Error::new(ErrorKind::Internal, operation).detail("no answer came")
}

fn read_revision(
    rule: &ChangeRule,
    shown: &str,
) -> std::result::Result<crate::model::Revision, Invalid> {
    rule.read_shown(shown).map_err(|invalid| invalid.within("revision"))
}

/// The resource a document belongs to, or why there is none.
pub(crate) async fn find_resource(
    context: &Context,
    operation: &'static str,
    url: &DocumentUrl,
) -> Result<Resource> {
    let matched = context.repository.match_resources(vec![url.clone()]).await?;
    matched.into_iter().next().flatten().ok_or_else(|| no_resource(operation, url))
}

/// The resource each document belongs to; what could not be read fails those it was read for.
async fn match_all(
    context: &Context,
    urls: impl IntoIterator<Item = DocumentUrl>,
) -> Vec<Result<Option<Resource>>> {
    let mut matched = Vec::new();
    for urls in batches(context.batch_limit(), urls) {
        let asked = urls.len();
        match context.repository.match_resources(urls).await {
            Ok(found) => matched.extend(found.into_iter().map(Ok)),
            Err(error) => matched.extend((0..asked).map(|_| Err(error.clone()))),
        }
    }
    matched
}

fn no_resource(operation: &'static str, url: &DocumentUrl) -> Error {
    let detail = format!("{url} matches the endpoint of no resource");
    Error::new(ErrorKind::NotFound, operation).field("url").detail(detail)
}

/// What still has to be spread is announced, also when it is not this write's doing: whoever
/// stored it may have died before saying so.
fn to_announce(key: DocumentKey, outcome: &WriteOutcome) -> Option<(DocumentKey, DocumentVersion)> {
    let version = outcome.version.filter(|_| outcome.undispatched)?;
    let document = DocumentVersion { url: key.url.clone(), version };
    Some((key, document))
}

/// Asks the next stage to spread documents.
pub(crate) async fn announce(
    context: &Context,
    documents: Vec<(DocumentKey, DocumentVersion)>,
) -> Result<()> {
    let mut by_resource: BTreeMap<ResourceId, Vec<DocumentVersion>> = BTreeMap::new();
    for (key, document) in documents {
        by_resource.entry(key.resource).or_default().push(document);
    }
    let mut messages = Vec::new();
    for (resource, documents) in by_resource {
        for documents in documents.chunks(DOCUMENTS_PER_TASK) {
            let task = Task::Partition { resource, documents: documents.to_vec() };
            messages.push(Outgoing::new(task.encode()?));
        }
    }
    if messages.is_empty() {
        return Ok(());
    }
    context.announce(&QueueName::Partition, messages).await
}
