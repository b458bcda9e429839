//! Takes one schema; gives repository, queue and leases in it.

use std::sync::Arc;

use bytes::Bytes;
use flare_core::model::DocumentChange;
use flare_core::port::{Part, QueueName};
use flare_core::{Backend, Result};

use crate::connection::Database;
use crate::repository::Wish;
use crate::{
    HostTransaction, PostgresConfig, PostgresLease, PostgresQueue, PostgresRepository,
    PostgresUpkeep, PreparedPut,
};

/// Repository, queue and leases in one schema. Repository and queue share a pool of connections; the leases
/// have a small one of their own, so that no load on the others delays a keep-alive.
///
/// Each part can also be had alone ([`PostgresRepository::connect`] …), to go with a queue or leases of
/// another kind.
#[derive(Debug, Clone)]
pub struct PostgresBackend {
    repository: Arc<PostgresRepository>,
    queue: Arc<PostgresQueue>,
    lease: Arc<PostgresLease>,
    database: Arc<Database>,
}

impl PostgresBackend {
    /// Connects to a schema that is set up, or sets it up if [`PostgresConfig::create_missing`].
    pub async fn connect(config: PostgresConfig) -> Result<Self> {
        let database = Database::open(&config).await?;
        let repository = PostgresRepository::on(Arc::clone(&database), &config).await?;
        let lease = PostgresLease::connect(config.clone()).await?;
        // One look for queue and leases, on connections that are not waited for.
        let queue = PostgresQueue::on(Arc::clone(&database), lease.pulse(), &config).await?;
        Ok(Self {
            repository: Arc::new(repository),
            queue: Arc::new(queue),
            lease: Arc::new(lease),
            database,
        })
    }

    /// The repository.
    pub fn repository(&self) -> Arc<PostgresRepository> {
        Arc::clone(&self.repository)
    }

    /// The queue.
    pub fn queue(&self) -> Arc<PostgresQueue> {
        Arc::clone(&self.queue)
    }

    /// The leases.
    pub fn lease(&self) -> Arc<PostgresLease> {
        Arc::clone(&self.lease)
    }

    /// Puts documents inside a transaction of the host's own, on the same database: they are committed with it,
    /// or not at all. One answer per document, in their order; an error is of all of them, and the
    /// transaction should then be rolled back.
    ///
    /// Decides exactly as [`Flare::put_json`](flare_core::Flare::put_json), by what this transaction sees. The
    /// documents are locked until it ends, in an order that is the same for all of one call: put many at once
    /// rather than one by one. Once it is committed clients are told within a poll, or within a
    /// [look](PostgresConfig::look_every) if the queue is elsewhere; at once after [`wake`](Self::wake). Nothing is ever tried again inside it: what the server refuses, because another
    /// transaction was faster under an isolation level above *read committed*, is the host's to try again,
    /// as a whole.
    pub async fn put_in<U: AsRef<str>, J: Into<Bytes>>(
        &self,
        transaction: impl HostTransaction,
        documents: impl IntoIterator<Item = (U, J)>,
    ) -> Result<Vec<DocumentChange>> {
        let wishes = documents.into_iter().map(|(url, json)| Wish::put(url.as_ref(), json.into()));
        self.repository.write_in(transaction, wishes.collect()).await
    }

    /// A put as a statement and its values, for a driver that [`put_in`](Self::put_in) does not take: run in a
    /// transaction of the host's own, it does the same for one document. Whose document it is and which revision it
    /// has are found out here, in any layout.
    pub async fn prepare_put(&self, url: &str, json: impl Into<Bytes>) -> Result<PreparedPut> {
        self.repository.prepare_put(url, json.into()).await
    }

    /// Deletes documents inside a transaction of the host's own, each as of the revision named, as clients see
    /// it, or as of the stored one; else as [`put_in`](Self::put_in).
    pub async fn delete_in<U: AsRef<str>>(
        &self,
        transaction: impl HostTransaction,
        documents: impl IntoIterator<Item = (U, Option<String>)>,
    ) -> Result<Vec<DocumentChange>> {
        let wishes =
            documents.into_iter().map(|(url, revision)| Wish::delete(url.as_ref(), revision));
        self.repository.write_in(transaction, wishes.collect()).await
    }

    /// Has this process look at once for what transactions have put: for after a commit. Wherever the queue is.
    pub fn wake(&self) {
        self.queue.wake(&QueueName::Partition);
        self.repository.wake();
    }
}

impl From<PostgresBackend> for Backend {
    fn from(postgres: PostgresBackend) -> Self {
        let upkeep = |part| Arc::new(PostgresUpkeep::on(Arc::clone(&postgres.database), part));
        let upkeep = Part::ALL.map(upkeep);
        let backend = Self::new(postgres.repository, postgres.queue, postgres.lease);
        upkeep.into_iter().fold(backend, |backend, upkeep| backend.upkeep(upkeep))
    }
}
