//! Takes finds and aggregates; gives their records, all at once or one by one, each wait within
//! the time a call may take.

use flare_core::model::RecordKind;
use flare_core::port::Scan;
use flare_core::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};
use mongodb::Cursor;
use mongodb::bson::{Document, RawDocumentBuf};

use crate::connection::Connection;
use crate::error;
use crate::record::Record;
use crate::unreadable::read_raw;

impl Connection {
    /// Every record a bounded question finds, where one that cannot be read fails them all: for
    /// answers that the server makes up, and parts of records.
    pub(crate) async fn all<T>(
        &self,
        operation: &'static str,
        question: impl IntoFuture<Output = mongodb::error::Result<Cursor<Document>>>,
        read: impl Fn(Record<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let records: Vec<Document> = self
            .run(operation, async { question.into_future().await?.try_collect().await })
            .await?;
        records.iter().map(|record| read(Record::new(operation, record))).collect()
    }

    /// Every record a bounded question finds, each read by itself.
    pub(crate) async fn each<T>(
        &self,
        operation: &'static str,
        kind: RecordKind,
        question: impl IntoFuture<Output = mongodb::error::Result<Cursor<Document>>>,
        read: impl Fn(Record<'_>) -> Result<T>,
    ) -> Result<Vec<Result<T>>> {
        let records = self.raw(operation, question).await?;
        Ok(records.iter().map(|raw| read_raw(operation, kind, raw, &read)).collect())
    }

    /// Every record a bounded question finds, as it is.
    pub(crate) async fn raw(
        &self,
        operation: &'static str,
        question: impl IntoFuture<Output = mongodb::error::Result<Cursor<Document>>>,
    ) -> Result<Vec<RawDocumentBuf>> {
        let all = async {
            question.into_future().await?.with_type::<RawDocumentBuf>().try_collect().await
        };
        self.run(operation, all).await
    }

    /// The first `limit` records that can be read, in the order of a question that is told how many
    /// to pass over and how many to give. Those that cannot be read take no place.
    pub(crate) fn first<'a, T, Q>(
        &'a self,
        operation: &'static str,
        kind: RecordKind,
        limit: usize,
        question: impl Fn(u64, usize) -> Q + Send + Sync + Clone + 'a,
        read: fn(Record<'_>) -> Result<T>,
    ) -> Scan<'a, T>
    where
        T: Send + 'a,
        Q: IntoFuture<Output = mongodb::error::Result<Cursor<Document>>> + Send + 'a,
        Q::IntoFuture: Send,
    {
        let pages = stream::try_unfold((0, limit), move |(passed, left)| {
            let question = question.clone();
            async move {
                if left == 0 {
                    return Ok::<_, Error>(None);
                }
                let page = self.each(operation, kind, question(passed, left), read).await?;
                let unreadable = page.iter().filter(|read| read.is_err()).count();
                // As many more as there were that could not be read, if there may be any.
                let more = if page.len() == left { unreadable } else { 0 };
                let next = (passed + page.len() as u64, more);
                Ok(Some((stream::iter(page.into_iter().map(Ok)), next)))
            }
        });
        pages.try_flatten().map(|read| read.and_then(|read| read)).boxed()
    }

    /// The records a question finds, fetched as they are asked for, each read by itself.
    pub(crate) fn scan<'a, T, Q>(
        &'a self,
        operation: &'static str,
        kind: RecordKind,
        question: Q,
        read: impl Fn(Record<'_>) -> Result<T> + Send + 'a,
    ) -> Scan<'a, T>
    where
        T: Send + 'a,
        Q: IntoFuture<Output = mongodb::error::Result<Cursor<Document>>> + Send + 'a,
        Q::IntoFuture: Send,
    {
        let records = stream::try_unfold(Reading::Not(question), move |reading| async move {
            let mut cursor = match reading {
                Reading::Not(question) => {
                    let cursor = self.run(operation, question).await?;
                    Box::new(cursor.with_type::<RawDocumentBuf>())
                }
                Reading::Cursor(cursor) => cursor,
            };
            let next = self.reach(operation, async {
                cursor.try_next().await.map_err(|error| error::from_driver(operation, error))
            });
            Ok::<_, Error>(next.await?.map(|record| (record, Reading::Cursor(cursor))))
        });
        records.map(move |record| read_raw(operation, kind, &record?, &read)).boxed()
    }
}

enum Reading<Q> {
    Not(Q),
    Cursor(Box<Cursor<RawDocumentBuf>>),
}
