//! Takes which rows somebody looks for; gives them by key, by document, by what is pending and due.

use flare_core::Result;
use flare_core::model::{DocumentKey, Row, RowKey, SubscriptionId};
use flare_core::port::{Listing, Pending, PendingQuery, Scan};
use uuid::Uuid;

use super::super::PostgresRepository;
use super::found::{FoundRow, WIDTH, columns, named};
use crate::codec::{counted, id as uuid, limit, read_time, time};
use crate::connection::Value;
use crate::fault::Worked;
use crate::pages::{ScanPage, pages};

/// Rows of a page of what is pending.
const PAGE: usize = 1_000;

const BY_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    ", k.i FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY k(subscription, url, i) \
     JOIN flare.subscription_ids s ON s.id = k.subscription \
     JOIN flare.documents d ON d.hash = hashtextextended(k.url, 0) AND d.url = k.url \
     JOIN flare.resource_ids i ON i.n = d.resource \
     JOIN flare.rows r ON r.subscription = s.n AND r.document = d.n"
);

macro_rules! of_documents {
    ($what:expr, $rest:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM (SELECT DISTINCT resource, url FROM unnest($1::uuid[], $2::text[]) k(resource, url)) k \
             JOIN flare.resource_ids i ON i.id = k.resource \
             JOIN flare.documents d ON d.resource = i.n AND d.hash = hashtextextended(k.url, 0) \
                 AND d.url = k.url \
             JOIN flare.rows r ON r.document = d.n JOIN flare.subscription_ids s ON s.n = r.subscription",
            $rest
        )
    };
}
const ROWS_OF: &str = of_documents!(
    columns!(),
    " WHERE $3::text IS NULL OR (d.url, s.id) > ($3 COLLATE \"C\", $4) ORDER BY d.url, s.id LIMIT $5"
);

macro_rules! pending {
    ($only:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM flare.rows r",
            named!(),
            "WHERE s.id = $1 AND r.pending ",
            $only,
            "AND (r.due, r.document) > ($2, $3) AND r.due <= $4 AND r.bucket BETWEEN $5 AND $6 \
             ORDER BY r.due, r.document LIMIT $7"
        )
    };
}
const PENDING: &str = pending!("");
const DEMANDED: &str = pending!("AND r.demanded ");

/// Where a scan of what is pending goes on: after this time and this document, and how many more.
#[derive(Clone, Copy)]
struct Place {
    due: i64,
    document: i64,
    left: usize,
}

impl PostgresRepository {
    /// The rows with these keys, one answer each.
    pub(super) async fn rows_by_key(&self, keys: &[RowKey]) -> Worked<Vec<Option<Row>>> {
        const OPERATION: &str = "rows";
        let (subscriptions, urls): (Vec<Uuid>, Vec<&str>) =
            keys.iter().map(|key| (uuid(key.subscription.as_bytes()), key.url.as_str())).unzip();
        let mut answers = vec![None; keys.len()];
        for row in &self.database.all(OPERATION, BY_KEY, &[&subscriptions, &urls]).await? {
            let place: i64 = row.try_get(WIDTH)?;
            let read = FoundRow::of(row)?.row(OPERATION)?;
            if let Some(at) = usize::try_from(place - 1).ok().and_then(|at| answers.get_mut(at)) {
                *at = Some(read);
            }
        }
        Ok(answers)
    }

    /// The rows of these documents, whosever they are.
    pub(super) async fn rows_of_documents(
        &self,
        documents: &[DocumentKey],
        after: Option<&RowKey>,
        most: usize,
    ) -> Worked<Listing<Row>> {
        const OPERATION: &str = "rows_of";
        let (resources, urls): (Vec<Uuid>, Vec<&str>) =
            documents.iter().map(|key| (uuid(key.resource.as_bytes()), key.url.as_str())).unzip();
        let url = after.map(|after| after.url.as_str());
        let subscription = after.map(|after| uuid(after.subscription.as_bytes()));
        let most = limit(most);
        let values: [&dyn Value; 5] = [&resources, &urls, &url, &subscription, &most];
        let rows = self.database.all(OPERATION, ROWS_OF, &values).await?;
        let found = rows.iter().map(FoundRow::of).collect::<std::result::Result<Vec<_>, _>>()?;
        let read = found.iter().map(|found| found.row(OPERATION));
        Ok(Listing::of_read(read, found.len() as u64)?)
    }

    /// How much is pending.
    pub(super) async fn count_of_pending(
        &self,
        subscription: Option<SubscriptionId>,
    ) -> Worked<Pending> {
        const OPERATION: &str = "count_pending";
        const ALL: &str =
            "SELECT count(*), min(r.since), min(r.due) FROM flare.rows r WHERE r.pending";
        const OF: &str = "SELECT count(*), min(r.since), min(r.due) FROM flare.rows r \
             JOIN flare.subscription_ids s ON s.n = r.subscription WHERE r.pending AND s.id = $1";
        let row = match subscription {
            None => self.database.one(OPERATION, ALL, &[]).await?,
            Some(id) => self.database.one(OPERATION, OF, &[&uuid(id.as_bytes())]).await?,
        };
        let Some(row) = row else { return Ok(Pending::default()) };
        let (since, due): (Option<i64>, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
        Ok(Pending::new(counted(Some(&row))?, since.map(read_time), due.map(read_time)))
    }

    /// How much is pending of each: few bytes for each that is behind, so all of them at once.
    pub(super) fn scan_counts(&self) -> Scan<'_, (SubscriptionId, Pending)> {
        const OPERATION: &str = "pending_each";
        pages((), move |()| {
            let read = move || async { Ok((self.count_each().await?, None)) };
            Box::pin(async move { self.database.attempts(OPERATION, read).await })
        })
    }

    async fn count_each(&self) -> Worked<Vec<Result<(SubscriptionId, Pending)>>> {
        const SQL: &str = "SELECT s.id, c.pending, c.since, c.due FROM (\
                 SELECT subscription, count(*) AS pending, min(since) AS since, min(due) AS due \
                 FROM flare.rows WHERE pending GROUP BY subscription) c \
             JOIN flare.subscription_ids s ON s.n = c.subscription";
        let found = self.database.all("pending_each", SQL, &[]).await?;
        let mut counts = Vec::with_capacity(found.len());
        for row in &found {
            let (id, count): (Uuid, i64) = (row.try_get(0)?, row.try_get(1)?);
            let (since, due): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
            let count = u64::try_from(count).unwrap_or_default();
            let pending = Pending::new(count, Some(read_time(since)), Some(read_time(due)));
            counts.push(Ok((SubscriptionId::from_bytes(id.into_bytes()), pending)));
        }
        Ok(counts)
    }

    /// What is pending, earliest due first. What cannot be read takes no place.
    pub(super) fn scan_pending(&self, query: PendingQuery) -> Scan<'_, Row> {
        let start = Place { due: i64::MIN, document: i64::MIN, left: query.limit };
        pages(start, move |place| {
            let query = query.clone();
            Box::pin(async move {
                let read = || self.page_of_pending(&query, place);
                self.database.attempts("pending_rows", read).await
            })
        })
    }

    async fn page_of_pending(
        &self,
        query: &PendingQuery,
        place: Place,
    ) -> Worked<ScanPage<Row, Place>> {
        const OPERATION: &str = "pending_rows";
        let size = place.left.min(PAGE);
        let subscription = uuid(query.subscription.as_bytes());
        let until = query.due_by.map_or(i64::MAX, time);
        let (first, last) =
            (i32::from(query.buckets.first.number()), i32::from(query.buckets.last.number()));
        let values: [&dyn Value; 7] =
            [&subscription, &place.due, &place.document, &until, &first, &last, &limit(size)];
        let sql = if query.demanded { DEMANDED } else { PENDING };
        let rows = self.database.all(OPERATION, sql, &values).await?;
        let found = rows.iter().map(FoundRow::of).collect::<std::result::Result<Vec<_>, _>>()?;
        let read: Vec<Result<Row>> = found.iter().map(|found| found.row(OPERATION)).collect();
        let left = place.left - read.iter().filter(|read| read.is_ok()).count();
        let last = found.last().filter(|_| found.len() == size && left > 0);
        let next =
            last.map(|last| Place { due: last.stored.due(), document: last.place.document, left });
        Ok((read, next))
    }
}
