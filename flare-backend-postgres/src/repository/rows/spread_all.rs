//! Takes documents of a resource; makes or raises a row of each for everyone in its only partition, and
//! dispatches them. What is written is one statement.

use std::collections::HashMap;

use bytes::Bytes;
use flare_core::model::{Content, Document, DocumentKey, DocumentUrl, Row, Version};
use flare_core::port::{DocumentsSpread, Member, SpreadAnswer, SpreadDocuments, WrittenRows};
use tokio_postgres::Row as Record;
use uuid::Uuid;

use super::super::PostgresRepository;
use super::super::documents::name_of;
use super::super::subscriptions::{members_of, partitions_of};
use super::found::FoundRow;
use super::spread::{made, raise};
use crate::codec::document::StoredDocument;
use crate::codec::{count, id as uuid, limit, unreadable_record};
use crate::connection::{Session, Value};
use crate::fault::Worked;

const OPERATION: &str = "spread_documents";

const HEADS: &str = "SELECT d.n, d.url, d.revision, d.gone, d.updated, d.dispatched, d.dispatched_gone, \
         d.open, d.trace, d.moved, d.needs, k.i \
     FROM unnest($2::text[]) WITH ORDINALITY k(url, i) JOIN flare.resource_ids r ON r.id = $1 \
     JOIN flare.documents d ON d.resource = r.n AND d.hash = hashtextextended(k.url, 0) AND d.url = k.url";

/// Makes the rows and dispatches the documents; gives the rows as they are then. A document that a host's open
/// transaction has locked is spread like any other, and stays undispatched: what comes of the transaction is
/// looked at later.
const SPREAD: &str = concat!(
    "WITH v AS MATERIALIZED (SELECT d.n, d.url, d.resource, k.revision, k.gone, k.bucket \
         FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::integer[]) \
             k(n, revision, gone, bucket) \
         JOIN flare.documents d ON d.n = k.n ORDER BY d.n FOR KEY SHARE OF d), \
     free AS (SELECT d.n FROM flare.documents d JOIN v ON v.n = d.n WHERE $7 \
         ORDER BY d.n FOR NO KEY UPDATE OF d SKIP LOCKED), \
     dispatched AS (UPDATE flare.documents d SET dispatched = d.revision, dispatched_gone = d.gone, \
             undispatched = false, open = NULL, moved = NULL \
         FROM free JOIN v ON v.n = free.n WHERE d.n = v.n AND d.revision = v.revision AND d.gone = v.gone \
         RETURNING d.n, d.gone, d.updated), \
     buried AS (INSERT INTO flare.tombstones (document, updated) \
         SELECT d.n, d.updated FROM dispatched d WHERE d.gone = 1 \
         ON CONFLICT (document) DO UPDATE SET updated = excluded.updated), \
     r AS (INSERT INTO flare.rows AS r ",
    made!(),
    " SELECT s.n, v.n, v.bucket, true, v.gone, v.revision, t.now, t.now, m.generation, 0, 0, 0, false \
         FROM (SELECT flare.now() AS now) t CROSS JOIN v \
         CROSS JOIN unnest($5::uuid[], $6::bigint[]) m(id, generation) \
         JOIN flare.subscription_ids s ON s.id = m.id ORDER BY s.n, v.n",
    raise!(),
    " RETURNING r.*) \
     SELECT s.id, i.id, v.url, r.subscription, r.document, r.state, r.wanted, r.settled, r.due, r.since, \
         r.generation, r.epoch, r.given_up, r.attempted, r.attempts, r.first_failure, r.round, \
         r.not_before, r.demanded, r.claim, r.claim_until, r.claim_held, r.needs, r.dead \
     FROM r JOIN v ON v.n = r.document JOIN flare.resource_ids i ON i.n = v.resource \
     JOIN flare.subscription_ids s ON s.n = r.subscription ORDER BY r.document, s.id"
);

/// Documents with their contents, as long as these are not too many bytes.
const CONTENTS: &str = "SELECT d.n, d.url, d.revision, d.gone, d.updated, d.dispatched, d.dispatched_gone, \
         d.open, d.trace, d.moved, d.needs, c.content \
     FROM (SELECT k.i, k.n, sum(coalesce(octet_length(c.content), 0)) OVER (ORDER BY k.i) AS bytes \
         FROM unnest($1::bigint[]) WITH ORDINALITY k(n, i) \
         LEFT JOIN flare.contents c ON c.document = k.n) k \
     JOIN flare.documents d ON d.n = k.n LEFT JOIN flare.contents c ON c.document = d.n \
     WHERE k.bytes <= $2 ORDER BY k.i";

/// A document that still has to be spread, and its number.
struct Owed {
    n: i64,
    key: DocumentKey,
    version: Version,
}

impl PostgresRepository {
    pub(super) async fn spread_to_all(&self, request: &SpreadDocuments) -> Worked<SpreadAnswer> {
        let mut session = self.database.session(OPERATION).await?;
        let partitions = partitions_of(&mut session, request.resource).await?;
        let members = match partitions[..] {
            [only] => members_of(&mut session, request.resource, only).await?,
            _ => Vec::new(),
        };
        if request.is_apart(partitions.len(), &members) {
            return Ok(SpreadAnswer::Apart);
        }
        let taken = request.taken(members.len());
        let owed = owed(&mut session, request, &request.documents[..taken]).await?;
        let mut answer = DocumentsSpread::new(taken, members);
        answer.spread = owed.iter().map(|owed| owed.key.url.clone()).collect();
        if !owed.is_empty() {
            answer.written = write(&mut session, request, &answer.members, &owed).await?;
        }
        Ok(SpreadAnswer::Done(answer))
    }
}

/// Those documents that still have to be spread. One that cannot be read fails them all, before anything
/// is written.
async fn owed(
    session: &mut Session<'_>,
    request: &SpreadDocuments,
    documents: &[(DocumentUrl, Version)],
) -> Worked<Vec<Owed>> {
    let urls: Vec<&str> = documents.iter().map(|(url, _)| url.as_str()).collect();
    let rows = session.query(HEADS, &[&uuid(request.resource.as_bytes()), &urls]).await?;
    let mut found: Vec<Option<Owed>> = documents.iter().map(|_| None).collect();
    for row in &rows {
        let place: i64 = row.try_get(11)?;
        let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
        let Some((url, version)) = documents.get(place) else { continue };
        let stored = StoredDocument::of(row)?;
        let key = DocumentKey::new(request.resource, url.clone());
        let head = stored.head().transpose();
        let head = head.map_err(|why| unreadable_record(OPERATION, name_of(&key), why))?;
        let document = head.map(|head| head.document(key.clone()));
        found[place] = document.filter(|document| document.owes(*version)).map(|document| Owed {
            n: stored.n,
            key,
            version: document.version,
        });
    }
    Ok(found.into_iter().flatten().collect())
}

/// Writes the rows, and gives what was written as far as it may be given.
async fn write(
    session: &mut Session<'_>,
    request: &SpreadDocuments,
    members: &[Member],
    owed: &[Owed],
) -> Worked<Vec<WrittenRows>> {
    let numbers: Vec<i64> = owed.iter().map(|owed| owed.n).collect();
    let revisions: Vec<i64> = owed.iter().map(|owed| owed.version.revision().get()).collect();
    let gone: Vec<i16> = owed.iter().map(|owed| owed.version.is_gone().into()).collect();
    let buckets: Vec<i32> = owed.iter().map(|owed| owed.key.url.bucket().number().into()).collect();
    let ids: Vec<Uuid> = members.iter().map(|it| uuid(it.subscription.as_bytes())).collect();
    let generations: Vec<i64> = members.iter().map(|it| count(it.generation.get())).collect();
    let spread: [&dyn Value; 7] =
        [&numbers, &revisions, &gone, &buckets, &ids, &generations, &request.dispatch];
    if request.most_content == 0 || members.is_empty() {
        session.query(SPREAD, &spread).await?;
        return Ok(Vec::new());
    }
    let most = limit(request.most_content);
    let contents: [&dyn Value; 2] = [&numbers, &most];
    let (rows, documents) = session.both((SPREAD, &spread), (CONTENTS, &contents)).await?;
    let mut by_document: HashMap<i64, Vec<Row>> = HashMap::with_capacity(owed.len());
    for row in &rows {
        let found = FoundRow::of(row)?;
        // One that cannot be read is for those to know who can.
        if let Ok(row) = found.row(OPERATION) {
            by_document.entry(found.place.document).or_default().push(row);
        }
    }
    let keys: HashMap<i64, &DocumentKey> = owed.iter().map(|owed| (owed.n, &owed.key)).collect();
    let mut written = Vec::with_capacity(documents.len());
    for row in &documents {
        let number: i64 = row.try_get(0)?;
        let Some(document) = keys.get(&number).map(|key| document(key, row)).transpose()? else {
            continue;
        };
        if let Some(document) = document {
            let rows = by_document.remove(&number).unwrap_or_default();
            written.push(WrittenRows { document, rows });
        }
    }
    Ok(written)
}

/// A document with its content, if it can be read.
fn document(key: &DocumentKey, row: &Record) -> Worked<Option<Document>> {
    let Some(Ok(head)) = StoredDocument::of(row)?.head() else { return Ok(None) };
    let mut document = head.document(key.clone());
    let content: Option<Vec<u8>> = row.try_get(11)?;
    document.content = content.map(|content| Content::from_stored(Bytes::from(content)));
    Ok(Some(document))
}
