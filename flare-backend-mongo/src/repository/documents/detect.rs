//! Takes puts and deletes; lets the server decide, in the write itself, whether anything changed.
//!
//! A write alone asks for the record as it was before, which says all. Puts that come together are written
//! together ([`batch`](super::batch)); what that leaves is written alone.

use flare_core::model::{
    Content, Detected, RECORD_FORMAT, Revision, Version, detect_delete, detect_leave, detect_put,
};
use flare_core::port::{DocumentWrite, Operation, Repository, WriteOutcome};
use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;

use super::super::waves::{Wave, waves};
use super::super::{MongoRepository, RACES, lost_race};
use super::{KIND, id, write_moved_from};
use crate::BACKEND;
use crate::error::{self, DUPLICATE_KEY};
use crate::record::{self, Record, literal, now};

pub(super) const OPERATION: &str = "write_documents";

/// Says within a write whether it takes place; in no record.
const TAKES_PLACE: &str = "takesPlace";

/// How many writes that go alone are under way at a time.
const SIDE_BY_SIDE: usize = 16;

/// What decides about a write: the record as it was before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    version: Option<Version>,
    dispatched: Option<Version>,
}

impl Before {
    pub(super) fn read(record: Record<'_>) -> Result<Self> {
        record.whole(KIND, |record| {
            // What is no version at all the pipelines below take for none.
            let version = match record.any("version") {
                Some(Bson::Document(_)) => record.version_if_any("version")?,
                _ => None,
            };
            let dispatched = record.version_if_any("dispatched").unwrap_or_default();
            Ok(Self { version, dispatched })
        })
    }

    fn is_undispatched(self) -> bool {
        self.dispatched < self.version
    }

    /// What the pipelines below have made of it, said once more for the caller.
    pub(super) fn outcome(self, detected: Detected) -> WriteOutcome {
        let Some(version) = detected.store else {
            return WriteOutcome::new(detected.change, self.version, self.is_undispatched());
        };
        let silent = !detected.change.notifies() && !self.is_undispatched();
        WriteOutcome::new(detected.change, Some(version), !silent)
    }
}

impl MongoRepository {
    pub(super) async fn detect(&self, writes: Vec<DocumentWrite>) -> Vec<Result<WriteOutcome>> {
        let mut outcomes: Vec<Option<Result<WriteOutcome>>> = Vec::new();
        outcomes.resize_with(writes.len(), || None);
        for wave in waves(writes, |write| write.key.clone()) {
            for (place, outcome) in self.detect_wave(wave).await {
                outcomes[place] = Some(outcome);
            }
        }
        let unanswered = || Err(Error::new(ErrorKind::Internal, OPERATION).with_backend(BACKEND));
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unanswered)).collect()
    }

    /// Writes whose keys all differ.
    async fn detect_wave(&self, wave: Wave<DocumentWrite>) -> Vec<(usize, Result<WriteOutcome>)> {
        let (puts, alone): (Wave<_>, Wave<_>) = if wave.len() == 1 {
            (Vec::new(), wave)
        } else {
            wave.into_iter().partition(|(_, write)| {
                matches!(write.operation, Operation::Put { .. }) && self.fits(write).is_ok()
            })
        };
        let (mut outcomes, again) = self.put_together(puts).await;
        let rest = alone
            .into_iter()
            .chain(again)
            .map(|(place, write)| async move { (place, self.write_alone(write).await) });
        outcomes
            .extend(stream::iter(rest).buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await);
        outcomes
    }

    /// One write, in one round trip that also says what was there before.
    async fn write_alone(&self, write: DocumentWrite) -> Result<WriteOutcome> {
        self.fits(&write)?;
        let (pipeline, upsert) = match &write.operation {
            Operation::Put { revision, content } => {
                (put_pipeline(*revision, content, &write), true)
            }
            // Nothing is remembered of a document never seen, unless a revision is named.
            Operation::Delete { revision } => {
                (delete_pipeline(*revision, &write), revision.is_some())
            }
            Operation::Leave { at } => (leave_pipeline(*at, &write), false),
        };
        let documents = &self.stored.documents;
        for _ in 0..RACES {
            let call = documents
                .find_one_and_update(doc! { "_id": id(&write.key) }, pipeline.clone())
                .upsert(upsert)
                .return_document(ReturnDocument::Before)
                .projection(versions());
            let before = match self.puts.reach(OPERATION, async { Ok(call.await) }).await? {
                Ok(Some(before)) => Before::read(Record::new(OPERATION, &before))?,
                Ok(None) => Before::default(),
                // Somebody else has just made the record.
                Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => continue,
                Err(error) => return Err(error::from_driver(OPERATION, error)),
            };
            return Ok(before.outcome(detected(before, &write.operation)));
        }
        Err(lost_race(OPERATION))
    }

    fn fits(&self, write: &DocumentWrite) -> Result<()> {
        let Operation::Put { content, .. } = &write.operation else { return Ok(()) };
        let (bytes, most) = (content.as_bytes().len(), self.facts().max_content);
        if bytes <= most {
            return Ok(());
        }
        let detail = format!("{bytes} bytes, at most {most} fit into a record of MongoDB's");
        Err(Error::new(ErrorKind::TooLarge, OPERATION)
            .with_backend(BACKEND)
            .with_field("document")
            .with_detail(detail))
    }
}

pub(super) fn versions() -> Document {
    doc! { "version": 1, "dispatched": 1, "needs": 1 }
}

pub(super) fn put_version(write: &DocumentWrite) -> Option<Version> {
    match &write.operation {
        Operation::Put { revision, .. } => Some(Version::live(*revision)),
        Operation::Delete { .. } | Operation::Leave { .. } => None,
    }
}

pub(super) fn detected(before: Before, operation: &Operation) -> Detected {
    match operation {
        Operation::Put { revision, .. } => detect_put(before.version, *revision),
        Operation::Delete { revision } => detect_delete(before.version, *revision),
        Operation::Leave { at } => detect_leave(before.version, *at),
    }
}

/// Sets the fields of the record if `version` is newer than the stored one; else leaves it.
fn if_newer(version: Bson, fields: Document) -> Vec<Document> {
    let is_version = doc! { "$eq": [{ "$type": "$version" }, "object"] };
    let stored = doc! { "$cond": [is_version, "$version", Bson::Null] };
    set_if(doc! { "$gt": [version, stored] }, fields)
}

/// Sets the fields of the record if this is so, and no worker must know a newer format; else leaves
/// it. Fields that are not named stay: a newer version may know them.
pub(super) fn set_if(so: Document, fields: Document) -> Vec<Document> {
    let known = doc! { "$not": [{ "$gt": ["$needs", RECORD_FORMAT] }] };
    let mut set = Document::new();
    for (field, value) in fields {
        let old = format!("${field}");
        set.insert(field, doc! { "$cond": [format!("${TAKES_PLACE}"), value, old] });
    }
    set.insert(TAKES_PLACE, "$$REMOVE");
    vec![doc! { "$set": { TAKES_PLACE: { "$and": [so, known] } } }, doc! { "$set": set }]
}

fn trace_text(write: &DocumentWrite) -> Bson {
    write.trace.as_ref().map_or_else(|| "$$REMOVE".into(), |trace| literal(trace.as_str()))
}

/// The note this write brings, else the one that is there.
fn moved_from(write: &DocumentWrite) -> Bson {
    write.moved_from.map_or_else(|| "$movedFrom".into(), |from| literal(write_moved_from(from)))
}

/// [`detect_put`], in the server's language. The open set is forgotten.
fn put_pipeline(revision: Revision, content: &Content, write: &DocumentWrite) -> Vec<Document> {
    let version = literal(record::version(Version::live(revision)));
    let record = doc! {
        "version": version.clone(),
        "content": literal(record::bytes(content.as_bytes())),
        "updatedAt": now(),
        "trace": trace_text(write),
        "undispatched": true,
        "tombstone": "$$REMOVE",
        "open": "$$REMOVE",
        "movedFrom": moved_from(write),
    };
    if_newer(version, record)
}

/// [`detect_delete`], in the server's language.
fn delete_pipeline(named: Option<Revision>, write: &DocumentWrite) -> Vec<Document> {
    let revision = named.map_or_else(|| "$version.revision".into(), |it| Bson::Int64(it.get()));
    let version: Bson = doc! { "revision": revision, "gone": true }.into();
    if_newer(version.clone(), gone_record(version, write))
}

/// [`detect_leave`], in the server's language.
fn leave_pipeline(at: Version, write: &DocumentWrite) -> Vec<Document> {
    let gone = literal(record::version(Version::gone(at.revision())));
    let stands =
        doc! { "$eq": ["$version", literal(record::version(Version::live(at.revision())))] };
    let leaves = doc! { "$and": [stands, !at.is_gone()] };
    set_if(leaves, gone_record(gone, write))
}

/// The record of a document that becomes gone as of `version`.
fn gone_record(version: Bson, write: &DocumentWrite) -> Document {
    // Nobody is told of what was never there, or is gone already; unless they have yet to be told.
    let silent = doc! { "$and": [
        { "$ne": ["$version.gone", false] },
        { "$gte": ["$dispatched", "$version"] },
    ] };
    doc! {
        "version": version.clone(),
        "updatedAt": now(),
        "dispatched": { "$cond": [silent.clone(), version, "$dispatched"] },
        "trace": trace_text(write),
        "undispatched": { "$cond": [silent.clone(), "$$REMOVE", true] },
        "tombstone": { "$cond": [silent.clone(), true, "$$REMOVE"] },
        "open": "$$REMOVE",
        "movedFrom": { "$cond": [silent, "$$REMOVE", moved_from(write)] },
    }
}
