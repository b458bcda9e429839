//! Takes documents from the origin; gives each to the store, which decides whether it changed,
//! and announces what did. Awaits the store; never a client.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tracing::warn;

use super::admission::{Admission, AdmissionTurn, PutEnded};
use super::batch::batches;
use super::context::Context;
use super::meter;
use super::moves::{self, MoveWritten, OverlappingDelete};
use super::stage::chain;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    ChangeRule, Content, DocumentChange, DocumentKey, DocumentUrl, Invalid, MovedFrom, Resource,
    ResourceId, TraceContext, Version,
};
use crate::port::task::{DOCUMENTS_PER_TASK, DocumentVersion, Task};
use crate::port::{DocumentWrite, Outgoing, QueueName, WriteOutcome};

/// One put or delete, as the origin asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) url: String,
    pub(crate) operation: ChangeOperation,
    pub(crate) trace: Option<TraceContext>,
}

#[derive(Debug, Clone)]
pub(crate) enum ChangeOperation {
    Put(Bytes),
    /// The revision as clients see it, if the origin names one.
    Delete(Option<String>),
}

/// The first stage: bounded by what the store answers in time, so that an origin that is faster is
/// told so soon. A call counts as one, however many changes it hands over.
#[derive(Debug)]
pub(crate) struct Ingest {
    context: Arc<Context>,
    admission: Admission,
    /// Told whenever a call has ended.
    freed: Notify,
    /// Calls that wait for that.
    in_line: AtomicUsize,
}

/// The part of `ingest_wait` that a call waits for a turn before it is answered *busy*. What comes all
/// at once is no load yet, and before the first answers little is known of the store; but a put that is
/// let in waits for the store as well.
const LINE: u32 = 4;

impl Ingest {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let settings = &context.settings;
        let admission = Admission::new(settings.ingest_limit, settings.ingest_wait);
        Self { context, admission, freed: Notify::new(), in_line: AtomicUsize::new(0) }
    }

    /// Stores changes; one answer per change. Once it is stored a change is accepted, even if
    /// announcing it fails: the reconciler finds it.
    pub(crate) async fn accept(
        &self,
        operation: &'static str,
        changes: Vec<Change>,
    ) -> Vec<Result<DocumentChange>> {
        let Some(mut admitted) = self.admit().await else {
            let busy = self.busy(operation);
            return changes.iter().map(|_| Err(busy.clone())).collect();
        };
        let mut answers: Vec<Option<Result<DocumentChange>>> = Vec::with_capacity(changes.len());
        let mut writes = Vec::with_capacity(changes.len());
        let mut deletes = Vec::new();
        for prepared in self.prepare(operation, changes).await {
            match prepared {
                Ok(PreparedPut::Write(write)) => writes.push((answers.len(), write)),
                Ok(PreparedPut::Delete(delete)) => deletes.push((answers.len(), delete)),
                Err(error) => {
                    if error.is_temporary() {
                        admitted.failed();
                    }
                    answers.push(Some(Err(error)));
                    continue;
                }
            }
            answers.push(None);
        }
        let limit = self.context.batch_limit();
        let mut changed = Vec::new();
        while !writes.is_empty() {
            let rest = writes.split_off(limit.min(writes.len()));
            admitted.begins_to_write();
            let written = self.write(writes, &mut changed).await;
            let outcomes = written.iter().map(|(_, outcome)| outcome);
            self.context.puts.note(outcomes, self.context.now());
            for (place, outcome) in written {
                admitted.saw(&outcome);
                meter::accepted(&outcome);
                answers[place] = Some(outcome.map(|outcome| outcome.change));
            }
            writes = rest;
        }
        for (place, delete) in deletes {
            admitted.begins_to_write();
            let outcome = moves::delete(&self.context, operation, delete).await;
            let outcome = outcome.map(|(outcome, announced)| {
                changed.extend(announced);
                outcome
            });
            self.context.puts.note(std::iter::once(&outcome), self.context.now());
            admitted.saw(&outcome);
            meter::accepted(&outcome);
            answers[place] = Some(outcome.map(|outcome| outcome.change));
        }
        if let Err(error) = announce(&self.context, changed).await {
            admitted.failed();
            warn!(error = %chain(&error), "could not announce changes, the reconciler will");
        }
        admitted.done();
        let answer = |answer: Option<_>| answer.unwrap_or_else(|| Err(unanswered(operation)));
        answers.into_iter().map(answer).collect()
    }

    /// A turn among all puts, unless as many as the store answers in time are under way, and go on
    /// being for a moment.
    async fn admit(&self) -> Option<Admitted<'_>> {
        match self.enter() {
            Some(admitted) => Some(admitted),
            None => self.wait_in_line().await,
        }
    }

    fn enter(&self) -> Option<Admitted<'_>> {
        let turn = self.admission.enter()?;
        let begun = self.context.clock.monotonic();
        Some(Admitted { ingest: self, turn, begun, ended: PutEnded::Refused, is_done: false })
    }

    async fn wait_in_line(&self) -> Option<Admitted<'_>> {
        let _waiting = InLine::stand(&self.in_line, self.context.settings.ingest_limit)?;
        let mut over = pin!(self.context.sleep(self.context.settings.ingest_wait / LINE));
        loop {
            let mut freed = pin!(self.freed.notified());
            // Before it looks: what ends in between is not missed.
            freed.as_mut().enable();
            if let Some(admitted) = self.enter() {
                // There may be room for more than one by now.
                self.freed.notify_one();
                return Some(admitted);
            }
            tokio::select! {
                biased;
                () = freed => {}
                () = &mut over => return None,
            }
        }
    }

    fn busy(&self, operation: &'static str) -> Error {
        let (limit, settings) = (self.admission.limit(), &self.context.settings);
        Error::new(ErrorKind::Busy, operation).with_detail(format!(
            "{limit} puts are under way, which is what the store answers within {:?} (ingest_limit \
             is {})",
            settings.ingest_wait, settings.ingest_limit
        ))
    }

    /// Stores one batch, each write under its place; adds what is to be announced.
    async fn write(
        &self,
        batch: Vec<(usize, IngestWrite)>,
        changed: &mut Vec<Announced>,
    ) -> Vec<(usize, Result<WriteOutcome>)> {
        let mut places = Vec::with_capacity(batch.len());
        let (mut written, mut writes) = (Vec::new(), Vec::with_capacity(batch.len()));
        for (place, IngestWrite { write, unfinished, may_leave_several }) in batch {
            places.push(place);
            written.push(MoveWritten::new(&write, unfinished, may_leave_several));
            writes.push(write);
        }
        let outcomes = self.context.repository.write_documents(writes).await;
        let outcomes = moves::conclude(&self.context, written, outcomes, changed).await;
        places.into_iter().zip(outcomes).collect()
    }

    /// What is to be done for each change, or why nothing is: all are matched together, and each
    /// fails alone. Only where several resources match is the store asked where a document is.
    async fn prepare(
        &self,
        operation: &'static str,
        changes: Vec<Change>,
    ) -> Vec<Result<PreparedPut>> {
        let parse = |change: &Change| DocumentUrl::parse(&change.url);
        let urls: Vec<_> = changes.iter().map(parse).collect();
        let matched = match_all(&self.context, urls.iter().flatten().cloned()).await;
        let mut matched = matched.into_iter();
        let mut prepared = Vec::with_capacity(changes.len());
        let mut overlapping = Vec::new();
        for (change, url) in changes.into_iter().zip(urls) {
            let url = url.map_err(|invalid| Error::invalid(operation, invalid));
            prepared.push(url.and_then(|url| {
                let resources = matched.next().unwrap_or_else(|| Err(unanswered(operation)))?;
                let best = resources.first().ok_or_else(|| no_resource(operation, &url))?;
                match change.operation {
                    ChangeOperation::Delete(shown) if resources.len() > 1 => {
                        let trace = change.trace;
                        let delete = OverlappingDelete { url, resources, shown, trace };
                        Ok(PreparedPut::Delete(delete))
                    }
                    _ => {
                        let write = to_write(change, url.clone(), best)
                            .map_err(|invalid| Error::invalid(operation, invalid))?;
                        if resources.len() > 1 {
                            overlapping.push((prepared.len(), (url, resources)));
                        }
                        let put = IngestWrite { write, unfinished: None, may_leave_several: false };
                        Ok(PreparedPut::Write(put))
                    }
                }
            }));
        }
        self.note_moves(overlapping, &mut prepared).await;
        prepared
    }

    /// Notes in each put, under its place, where the document is live now if that is not where the
    /// put is going to store it.
    async fn note_moves(
        &self,
        puts: Vec<(usize, (DocumentUrl, Vec<Resource>))>,
        prepared: &mut [Result<PreparedPut>],
    ) {
        if puts.is_empty() {
            return;
        }
        let (places, asked): (Vec<usize>, Vec<_>) = puts.into_iter().unzip();
        match moves::look_at(&self.context, asked).await {
            Ok(overlaps) => {
                for (place, overlap) in places.into_iter().zip(overlaps) {
                    match (overlap, &mut prepared[place]) {
                        (Ok(overlap), Ok(PreparedPut::Write(put))) => {
                            put.write.moved_from = overlap.moves_from();
                            put.unfinished = overlap.unfinished();
                            put.may_leave_several = overlap.may_leave_several();
                        }
                        (Ok(_), _) => {}
                        (Err(error), prepared) => *prepared = Err(error),
                    }
                }
            }
            Err(error) => {
                places.into_iter().for_each(|place| prepared[place] = Err(error.clone()));
            }
        }
    }
}

/// What is to be done for one change.
enum PreparedPut {
    Write(IngestWrite),
    /// Where it takes effect is looked up when it does.
    Delete(OverlappingDelete),
}

/// A write, and the move of its document that was under way before it.
struct IngestWrite {
    write: DocumentWrite,
    unfinished: Option<MovedFrom>,
    may_leave_several: bool,
}

/// A call that was admitted, until it is dropped: also by a caller that does not wait for the end.
#[derive(Debug)]
struct Admitted<'a> {
    ingest: &'a Ingest,
    turn: AdmissionTurn,
    begun: Duration,
    ended: PutEnded,
    is_done: bool,
}

impl Admitted<'_> {
    /// From here on it says something about the store.
    fn begins_to_write(&mut self) {
        if self.ended == PutEnded::Refused {
            self.ended = PutEnded::Stored;
        }
    }

    fn saw(&mut self, outcome: &Result<WriteOutcome>) {
        if outcome.is_err() {
            self.failed();
        }
    }

    fn failed(&mut self) {
        self.ended = PutEnded::Failed;
    }

    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let took = self.ingest.context.clock.monotonic().saturating_sub(self.begun);
        let ended = if self.is_done { self.ended } else { PutEnded::Failed };
        self.ingest.admission.leave(self.turn, took, ended);
        self.ingest.freed.notify_one();
    }
}

/// A call that waits, until it is dropped.
struct InLine<'a>(&'a AtomicUsize);

impl<'a> InLine<'a> {
    /// Counts one more, unless there are `most`.
    fn stand(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let one_more = |count: usize| (count < most).then_some(count + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Self(count))
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn to_write(
    change: Change,
    url: DocumentUrl,
    resource: &Resource,
) -> std::result::Result<DocumentWrite, Invalid> {
    let key = DocumentKey::new(resource.id, url);
    let write = match change.operation {
        ChangeOperation::Put(body) => {
            let (revision, content) = Content::parse(&resource.change, body)?;
            DocumentWrite::put(key, revision, content)
        }
        ChangeOperation::Delete(shown) => {
            let revision = shown.map(|shown| read_revision(&resource.change, &shown));
            DocumentWrite::delete(key, revision.transpose()?)
        }
    };
    Ok(write.trace(change.trace))
}

pub(super) fn unanswered(operation: &'static str) -> Error {
    Error::new(ErrorKind::Internal, operation).with_detail("no answer came")
}

pub(super) fn read_revision(
    rule: &ChangeRule,
    shown: &str,
) -> std::result::Result<crate::model::Revision, Invalid> {
    rule.read_shown(shown).map_err(|invalid| invalid.within("revision"))
}

/// The resources a document may belong to, the most specific one first, or why there is none.
pub(crate) async fn find_resources(
    context: &Context,
    operation: &'static str,
    url: &DocumentUrl,
) -> Result<Vec<Resource>> {
    let matched = context.repository.match_resources(vec![url.clone()]).await?.pop();
    let matched = matched.filter(|matched| !matched.is_empty());
    matched.ok_or_else(|| no_resource(operation, url))
}

/// The resources each document may belong to; what could not be read fails those it was read for.
pub(crate) async fn match_all(
    context: &Context,
    urls: impl IntoIterator<Item = DocumentUrl>,
) -> Vec<Result<Vec<Resource>>> {
    let mut matched = Vec::new();
    for urls in batches(context.batch_limit(), urls) {
        let asked = urls.len();
        let read = |urls| context.repository.match_resources(urls);
        match context.each_readable(urls, read).await {
            Ok(found) => matched.extend(found),
            Err(error) => matched.extend((0..asked).map(|_| Err(error.clone()))),
        }
    }
    matched
}

fn no_resource(operation: &'static str, url: &DocumentUrl) -> Error {
    let detail = format!("{url} matches the endpoint of no resource");
    Error::new(ErrorKind::NotFound, operation).with_field("url").with_detail(detail)
}

/// A document, and the version the next stage is to spread.
pub(crate) type Announced = (DocumentKey, Version);

/// What still has to be spread is announced, also when it is not this write's doing: the node that
/// stored it may have died before saying so.
pub(super) fn to_announce(key: DocumentKey, outcome: &WriteOutcome) -> Option<Announced> {
    Some((key, outcome.version.filter(|_| outcome.undispatched)?))
}

/// Asks the next stage to spread documents.
pub(crate) async fn announce(context: &Context, documents: Vec<Announced>) -> Result<()> {
    let mut by_resource: BTreeMap<ResourceId, Vec<DocumentVersion>> = BTreeMap::new();
    for (DocumentKey { resource, url, .. }, version) in documents {
        by_resource.entry(resource).or_default().push(DocumentVersion { url, version });
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
