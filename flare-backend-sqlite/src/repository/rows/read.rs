//! Takes which rows somebody looks for; gives them by key, by document, by what is pending and due.

use std::collections::{BTreeMap, BTreeSet};

use flare_core::Result;
use flare_core::model::{
    DocumentKey, DocumentUrl, RecordKind, RecordName, ResourceId, Row, RowKey, SubscriptionId,
};
use flare_core::port::{Listing, Pending, PendingQuery, Scan};
use rusqlite::params;

use super::place::KeyFinder;
use crate::codec::row::{COLUMNS, StoredRow};
use crate::codec::{self, damaged, read_time, time, unreadable_record};
use crate::engine::{Reader, names};
use crate::fault::Worked;
use crate::repository::documents::pages;
use crate::repository::{SqliteRepository, limit};

/// Rows of a page of what is pending.
const PAGE: usize = 1_000;

/// The rows with these keys, one answer each.
pub(super) fn by_key(reader: &Reader<'_>, keys: &[RowKey]) -> Worked<Vec<Option<Row>>> {
    let mut finder = KeyFinder::new(reader.connection)?;
    let mut rows = Vec::with_capacity(keys.len());
    for key in keys {
        let found = finder.find(key)?;
        let row = found.map(|found| found.stored.row(key.subscription, &found.document));
        let row = row.transpose();
        rows.push(row.map_err(|why| unreadable_record("rows", RecordName::Row(key.clone()), why))?);
    }
    Ok(rows)
}

/// A row's record with the ids that its numbers stand for: [`COLUMNS`] after subscription, resource, URL and
/// the number of the document.
pub(super) struct FoundRow {
    subscription: Vec<u8>,
    resource: Vec<u8>,
    url: String,
    pub(super) document: i64,
    stored: StoredRow,
}

impl FoundRow {
    /// What they are read from, for the row `r`.
    pub(super) const FROM: &str = "JOIN documents d ON d.n = r.document \
         JOIN resource_ids i ON i.n = d.resource \
         JOIN subscription_ids s ON s.n = r.subscription";

    pub(super) fn columns() -> String {
        format!("s.id, i.id, d.url, d.n, {COLUMNS}")
    }

    pub(super) fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            subscription: row.get(0)?,
            resource: row.get(1)?,
            url: row.get(2)?,
            document: row.get(3)?,
            stored: StoredRow::of(row, 4)?,
        })
    }

    /// The row, or the error that names it.
    pub(super) fn row(&self, operation: &'static str) -> Result<Row> {
        let Some((subscription, document)) = self.names() else {
            let name = RecordName::Unnamed { kind: RecordKind::Row, shown: self.url.clone() };
            return Err(unreadable_record(operation, name, damaged("url")));
        };
        self.stored.row(subscription, &document).map_err(|why| {
            let key = RowKey::new(subscription, document.url);
            unreadable_record(operation, RecordName::Row(key), why)
        })
    }

    fn names(&self) -> Option<(SubscriptionId, DocumentKey)> {
        let subscription = codec::read_id(&self.subscription, "subscription").ok()?;
        let resource = codec::read_id(&self.resource, "resource").ok()?;
        let url = DocumentUrl::parse(&self.url).ok()?;
        let document = DocumentKey::new(ResourceId::from_bytes(resource), url);
        Some((SubscriptionId::from_bytes(subscription), document))
    }
}

/// The rows of documents, by URL and then by subscription, after one of them.
pub(super) fn of_documents(
    reader: &Reader<'_>,
    documents: &[DocumentKey],
    after: Option<&RowKey>,
    most: usize,
) -> Worked<Listing<Row>> {
    const OPERATION: &str = "rows_of";
    let sql = format!(
        "SELECT {} FROM rows r {} WHERE r.document = ?1 AND s.id > ?2 ORDER BY s.id LIMIT ?3",
        FoundRow::columns(),
        FoundRow::FROM
    );
    let mut of = reader.sql(&sql)?;
    let mut read = Vec::new();
    let mut urls: BTreeMap<&DocumentUrl, BTreeSet<ResourceId>> = BTreeMap::new();
    for key in documents {
        urls.entry(&key.url).or_default().insert(key.resource);
    }
    for (url, resources) in urls {
        let after: &[u8] = match after {
            Some(after) if *url < after.url => continue,
            Some(after) if *url == after.url => after.subscription.as_bytes(),
            _ => &[],
        };
        let mut found: Vec<FoundRow> = Vec::new();
        for id in resources {
            let Some(resource) = names::resource(reader.connection, id)? else { continue };
            let Some(n) = names::document(reader.connection, resource, url)? else { continue };
            let left = limit(most.saturating_sub(read.len()));
            for row in of.query_map(params![n, after, left], FoundRow::of)? {
                found.push(row?);
            }
        }
        found.sort_by(|a, b| a.subscription.cmp(&b.subscription));
        read.extend(found.iter().map(|found| found.row(OPERATION)));
        if read.len() >= most {
            break;
        }
    }
    read.truncate(most);
    let total = read.len() as u64;
    Ok(Listing::of_read(read, total)?)
}

/// How much is pending.
pub(super) fn count(reader: &Reader<'_>, subscription: Option<SubscriptionId>) -> Worked<Pending> {
    let read = |row: &rusqlite::Row<'_>| {
        let (since, due): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
        Ok(Pending::new(codec::counted(row)?, since.map(read_time), due.map(read_time)))
    };
    let Some(id) = subscription else {
        let mut all = reader.sql(
            "SELECT count(*), min(since), min(due) FROM rows INDEXED BY rows_pending \
             WHERE pending = 1",
        )?;
        return Ok(all.query_row([], read)?);
    };
    let Some(of) = names::subscriber(reader.connection, id)? else { return Ok(Pending::default()) };
    let mut its = reader.sql(
        "SELECT count(*), min(since), min(due) FROM rows INDEXED BY rows_pending \
         WHERE pending = 1 AND subscription = ?1",
    )?;
    Ok(its.query_row([of.n], read)?)
}

/// How much is pending of each subscription that has something pending.
fn count_each(reader: &Reader<'_>) -> Worked<Vec<(SubscriptionId, Pending)>> {
    let mut each = reader.sql(
        "SELECT s.id, c.pending, c.since, c.due FROM (\
             SELECT subscription, count(*) AS pending, min(since) AS since, min(due) AS due \
             FROM rows INDEXED BY rows_pending WHERE pending = 1 GROUP BY subscription) c \
         JOIN subscription_ids s ON s.n = c.subscription",
    )?;
    let mut counts = Vec::new();
    let mut found = each.query([])?;
    while let Some(row) = found.next()? {
        let (id, count): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
        let (since, due): (i64, i64) = (row.get(2)?, row.get(3)?);
        // What has no id of ours is nobody's.
        let Ok(id) = codec::read_id(&id, "subscription") else { continue };
        let count = u64::try_from(count).unwrap_or_default();
        let pending = Pending::new(count, Some(read_time(since)), Some(read_time(due)));
        counts.push((SubscriptionId::from_bytes(id), pending));
    }
    Ok(counts)
}

/// Where a scan of what is pending goes on: after this time and this document, and how many more.
struct Place {
    due: i64,
    document: i64,
    left: usize,
}

impl SqliteRepository {
    /// How much is pending of each: few bytes for each that is behind, so all of them at once.
    pub(super) fn scan_counts(&self) -> Scan<'_, (SubscriptionId, Pending)> {
        pages((), |()| {
            let read =
                |reader: &Reader<'_>| Ok((count_each(reader)?.into_iter().map(Ok).collect(), None));
            Box::pin(self.engine.read("pending_each", read))
        })
    }

    /// What is pending, earliest due first. What cannot be read takes no place.
    pub(super) fn scan_pending(&self, query: PendingQuery) -> Scan<'_, Row> {
        const OPERATION: &str = "pending_rows";
        let start = Place { due: i64::MIN, document: i64::MIN, left: query.limit };
        pages(start, move |Place { due, document, left }| {
            let query = query.clone();
            let read = move |reader: &Reader<'_>| {
                let Some(of) = names::subscriber(reader.connection, query.subscription)? else {
                    return Ok((Vec::new(), None));
                };
                let (index, only) = match query.demanded {
                    true => ("rows_demanded", "AND r.demanded = 1"),
                    false => ("rows_pending", ""),
                };
                let sql = format!(
                    "SELECT {} FROM rows r INDEXED BY {index} {} \
                     WHERE r.pending = 1 {only} AND r.subscription = ?1 AND r.due >= ?2 AND r.due <= ?3 \
                     AND r.bucket BETWEEN ?4 AND ?5 AND (r.due > ?2 OR r.document > ?6) \
                     ORDER BY r.due, r.document LIMIT ?7",
                    FoundRow::columns(),
                    FoundRow::FROM
                );
                let size = left.min(PAGE);
                let values = params![
                    of.n,
                    due,
                    query.due_by.map_or(i64::MAX, time),
                    query.buckets.first.number(),
                    query.buckets.last.number(),
                    document,
                    limit(size),
                ];
                let mut find = reader.sql(&sql)?;
                let found = find.query_map(values, FoundRow::of)?;
                let found: Vec<FoundRow> = found.collect::<rusqlite::Result<_>>()?;
                let read: Vec<Result<Row>> = found.iter().map(|it| it.row(OPERATION)).collect();
                let left = left - read.iter().filter(|read| read.is_ok()).count();
                let last = found.last().filter(|_| found.len() == size && left > 0);
                let next = last.map(|last| Place {
                    due: last.stored.due(),
                    document: last.document,
                    left,
                });
                Ok((read, next))
            };
            Box::pin(self.engine.read(OPERATION, read))
        })
    }
}
