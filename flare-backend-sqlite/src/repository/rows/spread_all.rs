//! Takes documents of a resource, within the writer's transaction; makes or raises a row of each for everyone
//! in its only partition, and dispatches them. All of it is one commit.

use bytes::Bytes;
use flare_core::Result;
use flare_core::model::{Content, Document, DocumentKey, DocumentUrl, Spread, Version};
use flare_core::port::{DocumentsSpread, SpreadAnswer, SpreadDocuments, WrittenRows};
use rusqlite::OptionalExtension;

use super::place::RowFinder;
use super::spread;
use crate::codec::unreadable_record;
use crate::engine::Tx;
use crate::fault::Worked;
use crate::repository::documents::{NumberFinder, mark_dispatched, name_of};
use crate::repository::subscriptions::{members_of, partitions_of};

const OPERATION: &str = "spread_documents";

/// A document that still has to be spread, and its number.
struct Owed {
    n: i64,
    document: Document,
}

pub(super) fn spread(tx: &mut Tx<'_>, request: &SpreadDocuments) -> Worked<SpreadAnswer> {
    let Some(resource) = tx.resource(request.resource)? else {
        let taken = request.documents.len();
        return Ok(SpreadAnswer::Done(DocumentsSpread::new(taken, Vec::new())));
    };
    let partitions = partitions_of(tx.connection, resource)?;
    let members = match partitions[..] {
        [only] => members_of(tx.connection, resource, only)?,
        _ => Vec::new(),
    };
    if request.is_apart(partitions.len(), &members) {
        return Ok(SpreadAnswer::Apart);
    }
    let taken = request.taken(members.len());
    let owed = owed(tx, request, resource, &request.documents[..taken])?;
    let rows = owed.iter().flat_map(|Owed { document, .. }| {
        request.spreads(&members, &document.key.url, document.version)
    });
    let rows: Vec<Spread> = rows.collect();
    spread::spread(tx, &rows)?;
    if request.dispatch {
        let version = |Owed { document, .. }: &Owed| (document.key.clone(), document.version);
        let versions: Vec<(DocumentKey, Version)> = owed.iter().map(version).collect();
        mark_dispatched(tx, &versions)?.into_iter().collect::<Result<()>>()?;
    }
    let mut answer = DocumentsSpread::new(taken, members);
    answer.spread = owed.iter().map(|owed| owed.document.key.url.clone()).collect();
    if request.most_content > 0 {
        answer.written = written(tx, request, &answer, owed)?;
    }
    Ok(SpreadAnswer::Done(answer))
}

/// Those documents that still have to be spread. One that cannot be read fails them all, before anything
/// is written.
fn owed(
    tx: &mut Tx<'_>,
    request: &SpreadDocuments,
    resource: i64,
    documents: &[(DocumentUrl, Version)],
) -> Worked<Vec<Owed>> {
    let mut finder = NumberFinder::new(tx.connection)?;
    let mut owed = Vec::with_capacity(documents.len());
    for (url, version) in documents {
        let Some(stored) = finder.find(tx, resource, url)? else { continue };
        let key = DocumentKey::new(request.resource, url.clone());
        let head = stored.head().transpose();
        let head = head.map_err(|why| unreadable_record(OPERATION, name_of(&key), why))?;
        let document = head.map(|head| head.document(key));
        let document = document.filter(|document| document.owes(*version));
        owed.extend(document.map(|document| Owed { n: stored.n, document }));
    }
    Ok(owed)
}

/// What was written, as far as it may be given.
fn written(
    tx: &mut Tx<'_>,
    request: &SpreadDocuments,
    answer: &DocumentsSpread,
    owed: Vec<Owed>,
) -> Worked<Vec<WrittenRows>> {
    let mut finder = RowFinder::new(tx.connection)?;
    let mut content = tx.sql("SELECT content FROM contents WHERE document = ?1")?;
    let mut left = request.most_content;
    let mut written = Vec::with_capacity(owed.len());
    for Owed { n, mut document } in owed {
        let bytes: Option<Vec<u8>> = content.query_row([n], |row| row.get(0)).optional()?;
        let size = bytes.as_ref().map_or(0, Vec::len);
        let Some(rest) = left.checked_sub(size) else { continue };
        left = rest;
        document.content = bytes.map(|bytes| Content::from_stored(Bytes::from(bytes)));
        let mut rows = Vec::with_capacity(answer.members.len());
        for member in &answer.members {
            let found = finder.find(tx, member.subscription, &document.key.url)?;
            let row = found.map(|found| found.stored.row(member.subscription, &found.document));
            rows.extend(row.and_then(std::result::Result::ok));
        }
        written.push(WrittenRows { document, rows });
    }
    Ok(written)
}
