//! Runs Flare's writes inside a transaction of a host's own, by the host's own driver. The statement is read anew each
//! time: nothing is left behind on a connection that is not ours.

use async_trait::async_trait;
use postgres_types::{ToSql, Type};

use super::Value;
use crate::fault::Fault;

/// A transaction of the host's own that documents can be put and deleted in: a reference to one of `tokio_postgres`, or,
/// with the feature `sqlx`, a reference to one of `sqlx` that can be changed. Others take the statement of
/// [`prepare_put`](crate::PostgresBackend::prepare_put).
#[allow(private_bounds, reason = "only Flare knows what it runs there")]
pub trait HostTransaction: Within {}

impl<T: Within> HostTransaction for T {}

/// What there is to write, column by column.
pub(crate) struct WriteColumns<'a> {
    pub(crate) resources: Vec<String>,
    pub(crate) others: Vec<Option<String>>,
    pub(crate) urls: Vec<&'a str>,
    pub(crate) revisions: Vec<Option<i64>>,
    pub(crate) contents: Vec<Option<&'a [u8]>>,
    pub(crate) goes: Vec<bool>,
}

/// What came of a write: its place, and the word for it.
pub(crate) type Written = (i64, String);

/// Runs the statement that writes.
#[async_trait]
pub(crate) trait Within: Send {
    async fn write(
        &mut self,
        operation: &'static str,
        sql: &str,
        columns: &WriteColumns<'_>,
    ) -> flare_core::Result<Vec<Written>>;
}

#[async_trait]
impl Within for &tokio_postgres::Transaction<'_> {
    async fn write(
        &mut self,
        operation: &'static str,
        sql: &str,
        columns: &WriteColumns<'_>,
    ) -> flare_core::Result<Vec<Written>> {
        let WriteColumns { resources, others, urls, revisions, contents, goes } = columns;
        let values: [&dyn Value; 6] = [resources, others, urls, revisions, contents, goes];
        let values: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|value| (value.sql(), value.kind())).collect();
        let failed = |error| Fault::Sql(error).into_error(operation);
        let rows = self.query_typed(sql, &values).await.map_err(failed)?;
        let read = |row: &tokio_postgres::Row| -> Result<Written, tokio_postgres::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?))
        };
        rows.iter().map(read).collect::<Result<Vec<_>, _>>().map_err(failed)
    }
}

#[cfg(feature = "sqlx")]
#[async_trait]
impl Within for &mut sqlx::Transaction<'_, sqlx::Postgres> {
    async fn write(
        &mut self,
        operation: &'static str,
        sql: &str,
        columns: &WriteColumns<'_>,
    ) -> flare_core::Result<Vec<Written>> {
        // The text is ours but for the name of the schema, which is checked.
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        let written = sqlx::query_as::<sqlx::Postgres, Written>(sql)
            .persistent(false)
            .bind(&columns.resources)
            .bind(&columns.others)
            .bind(&columns.urls)
            .bind(&columns.revisions)
            .bind(&columns.contents)
            .bind(&columns.goes);
        let written = written.fetch_all(&mut ***self).await;
        written.map_err(|error| crate::error::from_sqlx(operation, error))
    }
}
