//! Takes what the repository port asks; gives it in one or two round trips. What decides is the model's own
//! functions, on records that are locked meanwhile; the usual ways of rows are statements of their own.

mod audit;
mod consumers;
mod documents;
mod jobs;
mod resources;
mod rows;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

use flare_core::Result;
use flare_core::model::{Applied, RecordName};
use flare_core::port::{Part, Repository, RepositoryFacts};
use tokio::sync::Notify;

use crate::PostgresConfig;
use crate::codec::{read_epoch, unreadable_record};
use crate::connection::{Database, Value};
use crate::schema;
pub use documents::PreparedPut;
pub(crate) use documents::Wish;

/// The repository in a schema.
#[derive(Debug)]
pub struct PostgresRepository {
    database: Arc<Database>,
    max_content: usize,
    catalogue: resources::Catalogue,
    /// How often documents are looked for that were put where no task could be stored.
    look_every: Duration,
    /// Has them looked for at once.
    woken: Notify,
}

impl PostgresRepository {
    /// Connects to a schema that is set up, or sets it up if [`PostgresConfig::create_missing`].
    pub async fn connect(config: PostgresConfig) -> Result<Self> {
        Self::on(Database::open(&config).await?, &config).await
    }

    pub(crate) async fn on(database: Arc<Database>, config: &PostgresConfig) -> Result<Self> {
        schema::check(&database, Part::Repository, config.create_missing).await?;
        Ok(Self {
            database,
            max_content: config.max_content,
            catalogue: resources::Catalogue::default(),
            look_every: config.look_every,
            woken: Notify::new(),
        })
    }

    /// Has whoever waits for documents that were put beside Flare look for them.
    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Runs a statement that changes a record unless a greater epoch has: it gives the epoch that was there, and
    /// whether the change took place; nothing if the record is not there.
    async fn fenced(
        &self,
        operation: &'static str,
        name: &RecordName,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Result<Applied> {
        self.database
            .attempts(operation, || async {
                let Some(row) = self.database.one(operation, sql, values).await? else {
                    return Ok(Applied::Missing);
                };
                if row.try_get(1)? {
                    return Ok(Applied::Done);
                }
                let epoch = read_epoch(row.try_get(0)?);
                let epoch = epoch.map_err(|why| unreadable_record(operation, name.clone(), why))?;
                Ok(Applied::Fenced { epoch })
            })
            .await
    }
}

impl Repository for PostgresRepository {
    fn facts(&self) -> RepositoryFacts {
        RepositoryFacts::new(1_000, self.max_content).spreads_at_once().puts_beside()
    }
}

/// The answer to each item of a batch that failed as a whole, or came through.
fn answers<T: Clone>(done: Result<Vec<Result<T>>>, items: usize) -> Vec<Result<T>> {
    done.unwrap_or_else(|error| vec![Err(error); items])
}
