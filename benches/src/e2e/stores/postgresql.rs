//! A schema of its own on the PostgreSQL server at `FLARE_TEST_POSTGRESQL_URI`: repository, queue and leases.

use std::time::Duration;

use async_trait::async_trait;
use flare_backend_postgres::{PostgresBackend, PostgresConfig};
use flare_core::Backend;
use tokio_postgres::{Client, NoTls};

use super::{MeasuredStore, Weight, unique_name};
use crate::Result;
use crate::mongo::timed;

pub(super) struct OnPostgresql {
    uri: String,
    schema: String,
    client: Client,
}

/// Where the server is.
pub(crate) fn server() -> Result<String> {
    const VARIABLE: &str = "FLARE_TEST_POSTGRESQL_URI";
    let needs = "scripts/services up postgresql; eval \"$(scripts/services env)\"";
    Ok(std::env::var(VARIABLE).map_err(|_| format!("needs {VARIABLE}: {needs}"))?)
}

impl OnPostgresql {
    pub(super) async fn make() -> Result<Self> {
        let uri = server()?;
        let (client, connection) = tokio_postgres::connect(&uri, NoTls).await?;
        tokio::spawn(connection);
        let schema = unique_name().replace('-', "_");
        let bare = format!(
            "CREATE SCHEMA {schema}_bare; CREATE TABLE {schema}_bare.bare (id integer PRIMARY KEY, n bigint); \
             INSERT INTO {schema}_bare.bare VALUES (1, 0)"
        );
        client.batch_execute(&bare).await?;
        Ok(Self { uri, schema, client })
    }
}

#[async_trait]
impl MeasuredStore for OnPostgresql {
    async fn open(&self) -> Result<Backend> {
        let config = PostgresConfig::new(&self.uri).schema(&self.schema).create_missing();
        Ok(PostgresBackend::connect(config).await?.into())
    }

    async fn bare_write(&self) -> Result<Option<Duration>> {
        let write = format!("UPDATE {}_bare.bare SET n = n + 1 WHERE id = 1", self.schema);
        let written = timed(async { Ok(self.client.batch_execute(&write).await?) });
        Ok(Some(written.await?.0))
    }

    async fn weights(&self) -> Result<Vec<Weight>> {
        let mut weights = Vec::new();
        for (what, tables) in [("document", &["documents", "contents"][..]), ("row", &["rows"])] {
            let first = format!("{}.{}", self.schema, tables[0]);
            let count = format!("SELECT count(*) FROM {first}");
            let records: i64 = self.client.query_one(&count, &[]).await?.get(0);
            let (mut stored, mut indexes) = (0, 0);
            for table in tables {
                let table = format!("{}.{table}", self.schema);
                let sizes = format!(
                    "SELECT pg_table_size('{table}'::regclass), pg_indexes_size('{table}'::regclass)"
                );
                let sizes = self.client.query_one(&sizes, &[]).await?;
                stored += sizes.get::<_, i64>(0).unsigned_abs();
                indexes += sizes.get::<_, i64>(1).unsigned_abs();
            }
            weights.push(Weight { what, records: records.unsigned_abs(), stored, indexes });
        }
        Ok(weights)
    }

    async fn remove(self: Box<Self>) -> Result<()> {
        let schema = &self.schema;
        let drop =
            format!("DROP SCHEMA IF EXISTS {schema} CASCADE; DROP SCHEMA {schema}_bare CASCADE");
        Ok(self.client.batch_execute(&drop).await?)
    }
}
