//! Takes which documents somebody looks for; gives them page by page, each page after the last one's place.

use flare_core::model::{DocumentKey, DocumentUrl, RecordKind, RecordName, ResourceId, Timestamp};
use flare_core::port::{DocumentHead, Scan, Undispatched};
use flare_core::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::super::SqliteRepository;
use crate::codec::document::{COLUMNS, Head, StoredDocument};
use crate::codec::{self, time, unreadable_record};
use crate::engine::{Reader, names};
use crate::fault::Worked;

/// Records of a page.
const PAGE: i64 = 512;

/// What a page of a scan has, and where the next one begins if there is one.
pub(in crate::repository) type ScanPage<T, P> = (Vec<Result<T>>, Option<P>);

/// The pages of a scan, each read after the place where the last one ended.
pub(in crate::repository) fn pages<'a, T, P>(
    start: P,
    page: impl Fn(P) -> futures::future::BoxFuture<'a, Result<ScanPage<T, P>>> + Send + 'a,
) -> Scan<'a, T>
where
    T: Send + 'a,
    P: Send + 'a,
{
    let pages = stream::try_unfold(Some(start), move |place| {
        let read = place.map(&page);
        async move {
            let Some(read) = read else { return Ok::<_, Error>(None) };
            let (items, next) = read.await?;
            Ok(Some((stream::iter(items.into_iter().map(Ok)), next)))
        }
    });
    pages.try_flatten().map(|item| item.and_then(|item| item)).boxed()
}

/// A record with the resource it is of, as a page has it.
struct Found {
    stored: StoredDocument,
    resource: Vec<u8>,
    /// What comes after it in the order of the scan.
    place: i64,
}

impl Found {
    /// Reads [`COLUMNS`], the resource's id and the place.
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { stored: StoredDocument::of(row)?, resource: row.get(11)?, place: row.get(12)? })
    }

    fn key(&self) -> Option<DocumentKey> {
        let resource = codec::read_id(&self.resource, "resource").ok()?;
        Some(DocumentKey::new(ResourceId::from_bytes(resource), self.stored.url().ok()?))
    }

    /// What is made of it, or the error that names it.
    fn read<T>(
        &self,
        operation: &'static str,
        make: impl FnOnce(DocumentKey, Head) -> T,
    ) -> Option<Result<T>> {
        let head = self.stored.head()?;
        let Some(key) = self.key() else {
            let name =
                RecordName::Unnamed { kind: RecordKind::Document, shown: self.stored.url.clone() };
            return Some(Err(unreadable_record(operation, name, codec::damaged("url"))));
        };
        Some(match head {
            Ok(head) => Ok(make(key, head)),
            Err(why) => Err(unreadable_record(operation, RecordName::Document(key), why)),
        })
    }
}

fn head(key: DocumentKey, head: Head) -> DocumentHead {
    DocumentHead::new(key, head.version, head.updated_at)
}

fn undispatched(key: DocumentKey, head: Head) -> Undispatched {
    Undispatched::of(&head.document(key))
}

/// Reads a page: those that can be read and those that cannot, and where the next begins.
fn page<T>(
    reader: &Reader<'_>,
    operation: &'static str,
    sql: &str,
    values: impl rusqlite::Params,
    make: fn(DocumentKey, Head) -> T,
) -> Worked<ScanPage<T, (i64, i64)>> {
    let mut find = reader.sql(sql)?;
    let found: Vec<Found> = find.query_map(values, Found::of)?.collect::<rusqlite::Result<_>>()?;
    let last = found.last().map(|last| (last.place, last.stored.n));
    let next = last.filter(|_| limit_reached(found.len()));
    Ok((found.iter().filter_map(|found| found.read(operation, make)).collect(), next))
}

fn limit_reached(found: usize) -> bool {
    i64::try_from(found).is_ok_and(|found| found == PAGE)
}

impl SqliteRepository {
    /// By the time they were stored at, then by number.
    fn scan_by_time<T: Send + 'static>(
        &self,
        operation: &'static str,
        only: &'static str,
        after: i64,
        until: Timestamp,
        make: fn(DocumentKey, Head) -> T,
    ) -> Scan<'_, T> {
        // Whatever was stored at the first moment, all of it is after it.
        let start = (after, i64::MAX);
        pages(start, move |(updated, n)| {
            let read = move |reader: &Reader<'_>| {
                let sql = format!(
                    "SELECT {COLUMNS}, i.id, d.updated FROM documents d \
                     JOIN resource_ids i ON i.n = d.resource \
                     WHERE {only} AND (d.updated, d.n) > (?1, ?2) AND d.updated <= ?3 \
                     ORDER BY d.updated, d.n LIMIT {PAGE}"
                );
                page(reader, operation, &sql, [updated, n, time(until)], make)
            };
            Box::pin(self.engine.read(operation, read))
        })
    }

    pub(super) fn scan_undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched> {
        let only = "d.undispatched = 1";
        self.scan_by_time("undispatched", only, i64::MIN, until, undispatched)
    }

    pub(super) fn scan_tombstones(
        &self,
        after: Option<Timestamp>,
        until: Timestamp,
    ) -> Scan<'_, DocumentHead> {
        let only = "d.gone = 1 AND d.undispatched = 0";
        let after = after.map_or(i64::MIN, time);
        self.scan_by_time("tombstones", only, after, until, head)
    }

    /// By the hash of their URLs, which follows from the URL alone; of equal ones by the URL.
    pub(super) fn scan_live(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead> {
        const OPERATION: &str = "scan_documents";
        let start = match after {
            Some(url) => (codec::hash(&url), url.as_str().to_owned()),
            None => (i64::MIN, String::new()),
        };
        pages(start, move |(hash, url)| {
            let read = move |reader: &Reader<'_>| {
                let Some(n) = names::resource(reader.connection, resource)? else {
                    return Ok((Vec::new(), None));
                };
                let sql = format!(
                    "SELECT {COLUMNS}, ?5, d.hash FROM documents d \
                     WHERE d.resource = ?1 AND (d.hash > ?2 OR (d.hash = ?2 AND d.url > ?3)) \
                     AND d.hash >= ?2 AND d.revision IS NOT NULL AND d.gone <> ?4 \
                     ORDER BY d.hash, d.url LIMIT {PAGE}"
                );
                let values = rusqlite::params![n, hash, url, true, resource.as_bytes()];
                let mut find = reader.sql(&sql)?;
                let found = find.query_map(values, Found::of)?;
                let found: Vec<Found> = found.collect::<rusqlite::Result<_>>()?;
                let last = found.last().map(|last| (last.place, last.stored.url.clone()));
                let next = last.filter(|_| limit_reached(found.len()));
                let read = found.iter().filter_map(|found| found.read(OPERATION, head)).collect();
                Ok((read, next))
            };
            Box::pin(self.engine.read(OPERATION, read))
        })
    }
}
