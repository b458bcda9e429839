//! Takes puts, deletes and moves within the writer's transaction; stores what `detect_*` decides, and answers.

use flare_core::model::{
    Detected, DocumentKey, ResourceId, Version, detect_delete, detect_leave, detect_put,
};
use flare_core::port::{DocumentWrite, Operation, WriteOutcome};
use flare_core::{Error, ErrorKind, Result};
use rusqlite::{CachedStatement, params};

use super::find::{NumberFinder, name_of};
use crate::codec::document::{Head, StoredDocument, moved};
use crate::codec::{hash, time, unreadable_record};
use crate::engine::Tx;
use crate::error;
use crate::fault::Worked;
use crate::repository::limit;

const OPERATION: &str = "write_documents";

const INSERT: &str = "INSERT INTO documents (revision, gone, updated, undispatched, dispatched, \
     dispatched_gone, trace, moved, resource, hash, url) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

const UPDATE: &str = "UPDATE documents SET revision = ?1, gone = ?2, updated = ?3, undispatched = ?4, \
     dispatched = ?5, dispatched_gone = ?6, trace = ?7, moved = ?8, open = NULL WHERE n = ?9";

const CONTENT: &str = "INSERT INTO contents (document, content) VALUES (?1, ?2) \
     ON CONFLICT (document) DO UPDATE SET content = excluded.content";

/// Writes each document; one answer each.
pub(super) fn write(
    tx: &mut Tx<'_>,
    writes: &[DocumentWrite],
    most: usize,
) -> Worked<Vec<Result<WriteOutcome>>> {
    let mut statements = Statements::prepare(tx)?;
    tx.each(OPERATION, writes, |tx, write| statements.write(tx, write, most))
}

struct Statements<'a> {
    finder: NumberFinder<'a>,
    insert: CachedStatement<'a>,
    update: CachedStatement<'a>,
    content: CachedStatement<'a>,
}

impl<'a> Statements<'a> {
    fn prepare(tx: &Tx<'a>) -> rusqlite::Result<Self> {
        Ok(Self {
            finder: NumberFinder::new(tx.connection)?,
            insert: tx.sql(INSERT)?,
            update: tx.sql(UPDATE)?,
            content: tx.sql(CONTENT)?,
        })
    }

    fn write(
        &mut self,
        tx: &mut Tx<'_>,
        write: &DocumentWrite,
        most: usize,
    ) -> Worked<WriteOutcome> {
        let DocumentWrite { key, operation, .. } = write;
        check_content(operation, most)?;
        let known = tx.resource(key.resource)?;
        let stored = match known {
            Some(resource) => self.finder.find(tx, resource, &key.url)?,
            None => None,
        };
        let head = stored.as_ref().and_then(StoredDocument::head).transpose();
        let head = head.map_err(|why| unreadable_record(OPERATION, name_of(key), why))?;
        let before = head.as_ref().map(|head| head.version);
        let detected = detect(operation, before);
        let Some(version) = detected.store else {
            let undispatched = head.as_ref().is_some_and(Head::is_undispatched);
            return Ok(WriteOutcome::new(detected.change, before, undispatched));
        };
        let next = next(tx, write, head, detected, version);
        let resource = match known {
            Some(resource) => resource,
            None => tx.resource_or_new(key.resource)?,
        };
        let n = self.store(tx, &next, stored.map(|stored| stored.n), resource, key)?;
        if let Operation::Put { content, .. } = operation {
            self.content.execute(params![n, content.as_bytes()])?;
        }
        Ok(WriteOutcome::new(detected.change, Some(version), next.is_undispatched()))
    }

    fn store(
        &mut self,
        tx: &mut Tx<'_>,
        next: &Head,
        stored: Option<i64>,
        resource: i64,
        key: &DocumentKey,
    ) -> rusqlite::Result<i64> {
        let (revision, gone) = (next.version.revision().get(), next.version.is_gone());
        let dispatched = next.dispatched.map(|version| version.revision().get());
        let dispatched_gone = next.dispatched.is_some_and(Version::is_gone);
        let trace = next.trace.as_ref().map(|trace| trace.as_str());
        let moved = next.moved_from.map(moved);
        let (updated, undispatched) = (time(next.updated_at), next.is_undispatched());
        match stored {
            Some(n) => {
                self.update.execute(params![
                    revision,
                    gone,
                    updated,
                    undispatched,
                    dispatched,
                    dispatched_gone,
                    trace,
                    moved,
                    n
                ])?;
                Ok(n)
            }
            None => {
                let (hash, url) = (hash(&key.url), key.url.as_str());
                self.insert.execute(params![
                    revision,
                    gone,
                    updated,
                    undispatched,
                    dispatched,
                    dispatched_gone,
                    trace,
                    moved,
                    resource,
                    hash,
                    url
                ])?;
                let n = tx.connection.last_insert_rowid();
                tx.remember_document(resource, &key.url, n);
                Ok(n)
            }
        }
    }
}

/// What a change leaves of a document.
fn next(
    tx: &Tx<'_>,
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
    let mut next = Head { version, updated_at: tx.now, dispatched, open: None, trace, moved_from };
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

fn check_content(operation: &Operation, most: usize) -> Result<(), Error> {
    let content = match operation {
        Operation::Put { content, .. } => Some(content),
        Operation::Delete { .. } | Operation::Leave { .. } => None,
    };
    match content.map(|content| content.as_bytes().len()) {
        Some(bytes) if bytes > most => {
            let detail = format!("{bytes} bytes, at most {most} fit (max-content)");
            let error = error::of(ErrorKind::TooLarge, OPERATION, detail);
            Err(error.with_field("document"))
        }
        _ => Ok(()),
    }
}

/// Removes a document that is at this version and dispatched; tells whether it was.
pub(super) fn remove(tx: &mut Tx<'_>, key: &DocumentKey, version: Version) -> Worked<bool> {
    let Some(resource) = tx.resource(key.resource)? else { return Ok(false) };
    let Some(n) = tx.document(resource, &key.url)? else { return Ok(false) };
    let mut at = tx.sql(
        "SELECT 1 FROM documents WHERE n = ?1 AND revision = ?2 AND gone = ?3 AND undispatched = 0",
    )?;
    let (revision, gone) = (version.revision().get(), version.is_gone());
    if !at.exists(params![n, revision, gone])? {
        return Ok(false);
    }
    forget(tx, n)?;
    tx.forgot()?;
    Ok(true)
}

/// Removes some of a resource's documents; tells how many.
pub(super) fn remove_some(tx: &mut Tx<'_>, resource: ResourceId, most: usize) -> Worked<u64> {
    let Some(n) = tx.resource(resource)? else { return Ok(0) };
    let mut some =
        tx.sql("SELECT n FROM documents WHERE resource = ?1 AND revision IS NOT NULL LIMIT ?2")?;
    let found = some.query_map([n, limit(most)], |row| row.get(0))?;
    let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
    for document in &found {
        forget(tx, *document)?;
    }
    match found.is_empty() {
        true => tx.forget_resource(resource)?,
        false => tx.forgot()?,
    }
    Ok(found.len() as u64)
}

/// Forgets a document. Its name stays for as long as rows have it.
fn forget(tx: &mut Tx<'_>, n: i64) -> rusqlite::Result<()> {
    tx.sql("DELETE FROM contents WHERE document = ?1")?.execute([n])?;
    let named = tx.sql("SELECT 1 FROM rows WHERE document = ?1")?.exists([n])?;
    if named {
        tx.sql(
            "UPDATE documents SET revision = NULL, gone = 2, undispatched = 0, dispatched = NULL, \
             dispatched_gone = 0, open = NULL, trace = NULL, moved = NULL, needs = NULL WHERE n = ?1",
        )?
        .execute([n])?;
    } else {
        tx.sql("DELETE FROM documents WHERE n = ?1")?.execute([n])?;
    }
    tx.after.freed = true;
    Ok(())
}
