//! Takes which documents somebody looks for; gives them page by page, each page after the last one's place.

use flare_core::Result;
use flare_core::model::{DocumentKey, DocumentUrl, RecordKind, RecordName, ResourceId, Timestamp};
use flare_core::port::{DocumentHead, Scan, Undispatched};
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::PostgresRepository;
use crate::codec::document::{Head, StoredDocument};
use crate::codec::{self, id as uuid, limit, time, unreadable_record};
use crate::connection::Value;
use crate::fault::Worked;
use crate::pages::{ScanPage, pages};

/// Records of a page.
const PAGE: usize = 512;

macro_rules! head {
    () => {
        "SELECT d.n, d.url, d.revision, d.gone, d.updated, d.dispatched, d.dispatched_gone, d.open, \
         d.trace, d.moved, d.needs, i.id, d.updated AS at"
    };
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            head!(),
            " FROM flare.documents d JOIN flare.resource_ids i ON i.n = d.resource WHERE ",
            $rest
        )
    };
}

/// Lists with about a page of documents, and those of them that are undispatched. Lists that name none any more are
/// removed, unless another node does: whoever writes a document names it anew, so none is missed.
const UNDISPATCHED: &str = concat!(
    "WITH l AS MATERIALIZED (SELECT l.n, l.documents FROM (SELECT l.n, l.documents, \
             sum(cardinality(l.documents)) OVER (ORDER BY l.n) - cardinality(l.documents) AS before \
         FROM (SELECT * FROM flare.undispatched l WHERE l.n > $1 ORDER BY l.n LIMIT $3) l) l \
         WHERE l.before < $3), \
     named AS MATERIALIZED (SELECT l.n, k.n AS document FROM l CROSS JOIN unnest(l.documents) k(n) \
         JOIN flare.documents d ON d.n = k.n AND d.listed = l.n WHERE d.undispatched), \
     spent AS (DELETE FROM flare.undispatched u WHERE u.n IN (SELECT u.n FROM flare.undispatched u JOIN l ON l.n = u.n \
         WHERE NOT EXISTS (SELECT 1 FROM named WHERE named.n = l.n) FOR UPDATE OF u SKIP LOCKED)), \
     d AS (",
    select!(
        "d.n = ANY (ARRAY(SELECT named.document FROM named)) AND d.undispatched AND d.updated <= $2"
    ),
    ") SELECT d.*, last.n FROM (SELECT max(l.n) FROM l) last(n) LEFT JOIN d ON true ORDER BY d.at, d.n"
);
/// Takes lists with about so many documents that were put beside Flare, and gives those of them that are undispatched;
/// says how many lists that were, and whether commits announce by themselves what they put.
const BESIDE: &str = concat!(
    "WITH taken AS (DELETE FROM flare.puts_beside p WHERE p.n IN (SELECT p.n FROM flare.puts_beside p \
             WHERE p.n IN (SELECT l.n FROM (SELECT l.n, \
                     sum(cardinality(l.documents)) OVER (ORDER BY l.n) - cardinality(l.documents) AS before \
                 FROM (SELECT * FROM flare.puts_beside l ORDER BY l.n LIMIT $1) l) l WHERE l.before < $1) \
             FOR UPDATE OF p SKIP LOCKED) RETURNING p.documents), \
     d AS (",
    select!(
        "d.n = ANY (ARRAY(SELECT k.n FROM taken CROSS JOIN unnest(taken.documents) k(n))) AND d.undispatched"
    ),
    ") SELECT d.*, t.lists, flare.has_queue() FROM (SELECT count(*) FROM taken) t(lists) LEFT JOIN d ON true"
);
const TOMBSTONES: &str = concat!(
    head!(),
    " FROM flare.tombstones t JOIN flare.documents d ON d.n = t.document AND d.gone = 1 AND NOT d.undispatched \
     JOIN flare.resource_ids i ON i.n = d.resource WHERE (t.updated, t.document) > ($1, $2) AND t.updated <= $3 \
     ORDER BY t.updated, t.document LIMIT $4"
);
const FIRST: &str =
    select!("i.id = $1 AND d.revision IS NOT NULL AND d.gone <> 1 ORDER BY d.hash, d.url LIMIT $2");
const AFTER: &str = select!(
    "i.id = $1 AND d.revision IS NOT NULL AND d.gone <> 1 \
     AND (d.hash, d.url) > (hashtextextended($3, 0), $3) ORDER BY d.hash, d.url LIMIT $2"
);

/// What a look for documents that were put beside Flare gave.
pub(super) struct Beside {
    pub(super) found: Vec<Undispatched>,
    /// Whether anything was taken, be it dispatched meanwhile.
    pub(super) took_some: bool,
    /// Whether commits announce what they put from now on.
    pub(super) announced: bool,
}

/// A record with the resource it is of, as a page has it.
struct Found {
    stored: StoredDocument,
    resource: Uuid,
    updated: i64,
}

impl Found {
    fn of(row: &Row) -> Worked<Self> {
        let stored = StoredDocument::of(row)?;
        Ok(Self { stored, resource: row.try_get(11)?, updated: row.try_get(12)? })
    }

    /// What is made of it, or the error that names it.
    fn read<T>(
        &self,
        operation: &'static str,
        make: impl FnOnce(DocumentKey, Head) -> T,
    ) -> Option<Result<T>> {
        let head = self.stored.head()?;
        let Ok(url) = self.stored.url() else {
            let name =
                RecordName::Unnamed { kind: RecordKind::Document, shown: self.stored.url.clone() };
            return Some(Err(unreadable_record(operation, name, codec::damaged("url"))));
        };
        let key = DocumentKey::new(ResourceId::from_bytes(self.resource.into_bytes()), url);
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

impl PostgresRepository {
    /// List by list, in the order in which they were begun.
    pub(super) fn scan_undispatched(&self, until: Timestamp) -> Scan<'_, Undispatched> {
        pages(i64::MIN, move |list| {
            let read = move || self.page_of_undispatched(list, until);
            Box::pin(async move { self.database.attempts("undispatched", read).await })
        })
    }

    async fn page_of_undispatched(
        &self,
        after: i64,
        until: Timestamp,
    ) -> Worked<ScanPage<Undispatched, i64>> {
        const OPERATION: &str = "undispatched";
        let values: [&dyn Value; 3] = [&after, &time(until), &limit(PAGE)];
        let rows = self.database.all(OPERATION, UNDISPATCHED, &values).await?;
        // The last list is named with each document, and by itself where there is none.
        let last: Option<i64> = match rows.first() {
            Some(row) => row.try_get(13)?,
            None => None,
        };
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            if row.try_get::<_, Option<i64>>(0)?.is_some() {
                found.push(Found::of(row)?);
            }
        }
        Ok((found.iter().filter_map(|it| it.read(OPERATION, undispatched)).collect(), last))
    }

    /// One look for what was put beside Flare.
    pub(super) async fn look_beside(&self, documents: usize) -> Worked<Beside> {
        const OPERATION: &str = "take_puts_beside";
        let rows = self.database.all(OPERATION, BESIDE, &[&limit(documents)]).await?;
        let (lists, announced) = match rows.first() {
            Some(row) => (row.try_get::<_, i64>(13)?, row.try_get(14)?),
            None => (0, false),
        };
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            if row.try_get::<_, Option<i64>>(0)?.is_some() {
                // The reconciler names those that cannot be read.
                found.extend(Found::of(row)?.read(OPERATION, undispatched).and_then(Result::ok));
            }
        }
        Ok(Beside { found, took_some: lists > 0, announced })
    }

    /// By the time they were stored at, then by number.
    async fn page_of_tombstones(
        &self,
        (updated, n): (i64, i64),
        until: Timestamp,
    ) -> Worked<ScanPage<DocumentHead, (i64, i64)>> {
        const OPERATION: &str = "tombstones";
        let values: [&dyn Value; 4] = [&updated, &n, &time(until), &limit(PAGE)];
        let rows = self.database.all(OPERATION, TOMBSTONES, &values).await?;
        let found = rows.iter().map(Found::of).collect::<Worked<Vec<_>>>()?;
        let last = found.last().filter(|_| found.len() == PAGE);
        let next = last.map(|last| (last.updated, last.stored.n));
        Ok((found.iter().filter_map(|found| found.read(OPERATION, head)).collect(), next))
    }

    pub(super) fn scan_tombstones(
        &self,
        after: Option<Timestamp>,
        until: Timestamp,
    ) -> Scan<'_, DocumentHead> {
        // Whatever was stored at the first moment, all of it is before what comes after it.
        pages((after.map_or(i64::MIN, time), i64::MAX), move |place| {
            let read = move || self.page_of_tombstones(place, until);
            Box::pin(async move { self.database.attempts("tombstones", read).await })
        })
    }

    /// By the hash of their URLs, which follows from the URL alone; of equal ones by the URL.
    pub(super) fn scan_live(
        &self,
        resource: ResourceId,
        after: Option<DocumentUrl>,
    ) -> Scan<'_, DocumentHead> {
        let start = after.map(|url| url.as_str().to_owned());
        pages(start, move |after| {
            Box::pin(async move {
                let read = || self.page_of_live(resource, after.as_deref());
                self.database.attempts("scan_documents", read).await
            })
        })
    }

    async fn page_of_live(
        &self,
        resource: ResourceId,
        after: Option<&str>,
    ) -> Worked<ScanPage<DocumentHead, Option<String>>> {
        const OPERATION: &str = "scan_documents";
        let (resource, most) = (uuid(resource.as_bytes()), limit(PAGE));
        let rows = match after {
            None => self.database.all(OPERATION, FIRST, &[&resource, &most]).await?,
            Some(after) => self.database.all(OPERATION, AFTER, &[&resource, &most, &after]).await?,
        };
        let found = rows.iter().map(Found::of).collect::<Worked<Vec<_>>>()?;
        let last = found.last().filter(|_| found.len() == PAGE);
        let next = last.map(|last| Some(last.stored.url.clone()));
        Ok((found.iter().filter_map(|found| found.read(OPERATION, head)).collect(), next))
    }
}
