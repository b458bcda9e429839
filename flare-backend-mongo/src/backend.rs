//! Takes one database; gives repository, queue and leases on it.

use std::sync::Arc;

use flare_core::{Backend, Result};

use crate::connection::Connection;
use crate::{MongoConfig, MongoLease, MongoQueue, MongoRepository};

/// Repository, queue and leases on one database. Repository and queue share a pool of connections; the
/// leases have a small one of their own, so that no load on the others delays a keep-alive.
///
/// Each part can also be had alone ([`MongoRepository::connect`] …), to go with a queue or leases
/// of another kind.
#[derive(Debug, Clone)]
pub struct MongoBackend {
    repository: Arc<MongoRepository>,
    queue: Arc<MongoQueue>,
    lease: Arc<MongoLease>,
}

impl MongoBackend {
    /// Connects to a database that is set up, or sets it up if [`MongoConfig::create_missing`].
    pub async fn connect(config: MongoConfig) -> Result<Self> {
        let connection = Connection::open(&config).await?;
        let create = config.create_missing;
        Ok(Self {
            repository: Arc::new(MongoRepository::on(connection.clone(), create).await?),
            queue: Arc::new(MongoQueue::on(connection, create).await?),
            lease: Arc::new(MongoLease::connect(config).await?),
        })
    }

    /// The repository.
    pub fn repository(&self) -> Arc<MongoRepository> {
        Arc::clone(&self.repository)
    }

    /// The queue.
    pub fn queue(&self) -> Arc<MongoQueue> {
        Arc::clone(&self.queue)
    }

    /// The leases.
    pub fn lease(&self) -> Arc<MongoLease> {
        Arc::clone(&self.lease)
    }
}

impl From<MongoBackend> for Backend {
    fn from(mongo: MongoBackend) -> Self {
        Self::new(mongo.repository, mongo.queue, mongo.lease)
    }
}
