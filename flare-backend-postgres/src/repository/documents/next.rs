//! Takes what is stored of documents and what is wanted of them; gives what becomes of them, document by document and
//! column by column. Awaits nothing, and stores nothing.

use flare_core::Result;
use flare_core::model::{
    Detected, DocumentKey, Timestamp, Version, detect_delete, detect_leave, detect_put,
};
use flare_core::port::{DocumentWrite, Operation, WriteOutcome};
use uuid::Uuid;

use super::lock::{Locked, State};
use crate::codec::document::{Head, moved};
use crate::codec::{id as uuid, time};
use crate::connection::Value;

/// What becomes of a document in a batch.
pub(super) struct Next<'a> {
    pub(super) n: Option<i64>,
    head: Option<Head>,
    content: Option<&'a [u8]>,
    pub(super) changed: bool,
}

impl<'a> Next<'a> {
    pub(super) fn of(locked: &Locked) -> Option<Result<Self>> {
        let (n, head) = match &locked.state {
            State::Taken => return None,
            State::Absent => (None, None),
            State::Held { n, head } => match head.clone().transpose() {
                Ok(head) => (Some(*n), head),
                Err(error) => return Some(Err(error)),
            },
        };
        Some(Ok(Self { n, head, content: None, changed: false }))
    }

    pub(super) fn take(&mut self, write: &'a DocumentWrite, now: Timestamp) -> WriteOutcome {
        let before = self.head.as_ref().map(|head| head.version);
        let detected = detect(&write.operation, before);
        let Some(version) = detected.store else {
            let undispatched = self.head.as_ref().is_some_and(Head::is_undispatched);
            return WriteOutcome::new(detected.change, before, undispatched);
        };
        let next = after(now, write, self.head.take(), detected, version);
        let undispatched = next.is_undispatched();
        self.head = Some(next);
        self.changed = true;
        if let Operation::Put { content, .. } = &write.operation {
            self.content = Some(content.as_bytes());
        }
        WriteOutcome::new(detected.change, Some(version), undispatched)
    }
}

/// What a change leaves of a document.
fn after(
    now: Timestamp,
    write: &DocumentWrite,
    before: Option<Head>,
    detected: Detected,
    version: Version,
) -> Head {
    let was_dispatched = before.as_ref().is_none_or(|head| !head.is_undispatched());
    // A tombstone nobody is told of needs no spreading.
    let silent = !detected.change.notifies() && was_dispatched;
    let (dispatched, moved_from) = match before {
        Some(head) => (head.dispatched, head.moved_from),
        None => (None, None),
    };
    let dispatched = if silent { Some(version) } else { dispatched };
    let moved_from = write.moved_from.or(moved_from);
    let trace = write.trace.clone();
    let mut next = Head { version, updated_at: now, dispatched, open: None, trace, moved_from };
    if !next.is_undispatched() {
        next.moved_from = None;
    }
    next
}

fn detect(operation: &Operation, before: Option<Version>) -> Detected {
    match operation {
        Operation::Put { revision, .. } => detect_put(before, *revision),
        Operation::Delete { revision } => detect_delete(before, *revision),
        Operation::Leave { at } => detect_leave(before, *at),
    }
}

/// Documents, column by column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    n: Vec<Option<i64>>,
    resource: Vec<Uuid>,
    url: Vec<&'a str>,
    revision: Vec<i64>,
    gone: Vec<i16>,
    updated: Vec<i64>,
    undispatched: Vec<bool>,
    dispatched: Vec<Option<i64>>,
    dispatched_gone: Vec<i16>,
    trace: Vec<Option<&'a str>>,
    moved: Vec<Option<Vec<u8>>>,
    content: Vec<Option<&'a [u8]>>,
    place: Vec<i64>,
}

impl<'a> Columns<'a> {
    /// Those that changed.
    pub(super) fn of(keys: &'a [DocumentKey], nexts: &'a [Option<Result<Next<'a>>>]) -> Self {
        let mut columns = Self::default();
        for (place, (key, next)) in keys.iter().zip(nexts).enumerate() {
            if let Some(Ok(next)) = next
                && let (true, Some(head)) = (next.changed, &next.head)
            {
                columns.push(place, key, next, head);
            }
        }
        columns
    }

    fn push(&mut self, place: usize, key: &'a DocumentKey, next: &Next<'a>, head: &'a Head) {
        self.n.push(next.n);
        self.resource.push(uuid(key.resource.as_bytes()));
        self.url.push(key.url.as_str());
        self.revision.push(head.version.revision().get());
        self.gone.push(head.version.is_gone().into());
        self.updated.push(time(head.updated_at));
        self.undispatched.push(head.is_undispatched());
        self.dispatched.push(head.dispatched.map(|version| version.revision().get()));
        self.dispatched_gone.push(head.dispatched.is_some_and(Version::is_gone).into());
        self.trace.push(head.trace.as_ref().map(|trace| trace.as_str()));
        self.moved.push(head.moved_from.map(moved));
        self.content.push(next.content);
        self.place.push(crate::codec::limit(place));
    }

    pub(super) fn values(&self) -> [&dyn Value; 13] {
        [
            &self.n,
            &self.resource,
            &self.url,
            &self.revision,
            &self.gone,
            &self.updated,
            &self.undispatched,
            &self.dispatched,
            &self.dispatched_gone,
            &self.trace,
            &self.moved,
            &self.content,
            &self.place,
        ]
    }
}
