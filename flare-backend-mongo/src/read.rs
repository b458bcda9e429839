//! Takes finds and aggregates; gives their records, all at once or one by one, each wait within
//! the time a call may take.

use flare_core::port::Scan;
use flare_core::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};
use mongodb::Cursor;
use mongodb::bson::Document;

use crate::connection::Connection;
use crate::error;
use crate::record::Record;

impl Connection {
    /// Every record a bounded question finds.
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

    /// The records a question finds, fetched as they are asked for.
    pub(crate) fn scan<'a, T, Q>(
        &'a self,
        operation: &'static str,
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
                Reading::Not(question) => Box::new(self.run(operation, question).await?),
                Reading::Cursor(cursor) => cursor,
            };
            let next = self.reach(operation, async {
                cursor.try_next().await.map_err(|error| error::from_driver(operation, error))
            });
            Ok::<_, Error>(next.await?.map(|record| (record, Reading::Cursor(cursor))))
        });
        records.map(move |record| read(Record::new(operation, &record?))).boxed()
    }
}

enum Reading<Q> {
    Not(Q),
    Cursor(Box<Cursor<Document>>),
}
