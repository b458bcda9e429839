//! Takes one file; gives repository, queue and leases in it.

use std::path::PathBuf;
use std::sync::Arc;

use flare_core::port::Part;
use flare_core::{Backend, Error, Result};

use crate::engine::Engine;
use crate::{BACKEND, SqliteConfig, SqliteLease, SqliteQueue, SqliteRepository, SqliteUpkeep};

/// Repository, queue and leases in one file. Clones share it; the last one that is dropped closes it.
#[derive(Debug, Clone)]
pub struct SqliteBackend {
    repository: Arc<SqliteRepository>,
    queue: Arc<SqliteQueue>,
    lease: Arc<SqliteLease>,
    config: SqliteConfig,
}

impl SqliteBackend {
    /// Opens the file at `path`, and makes it if it is not there.
    ///
    /// Works for a moment on the calling thread: a new file is made, an older one is brought to the shape of
    /// this version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        Self::with_config(&SqliteConfig::new(path))
    }

    /// Opens a file as `config` says.
    pub fn with_config(config: &SqliteConfig) -> Result<Self> {
        config.check().map_err(|invalid| Error::invalid("open", invalid).with_backend(BACKEND))?;
        let engine = Arc::new(Engine::open(config.path(), &config.options())?);
        let most = config.content_limit();
        Ok(Self {
            repository: Arc::new(SqliteRepository::new(Arc::clone(&engine), most)),
            queue: Arc::new(SqliteQueue::new(Arc::clone(&engine))),
            lease: Arc::new(SqliteLease::new(engine)),
            config: config.clone(),
        })
    }

    /// The repository.
    pub fn repository(&self) -> Arc<SqliteRepository> {
        Arc::clone(&self.repository)
    }

    /// The queue.
    pub fn queue(&self) -> Arc<SqliteQueue> {
        Arc::clone(&self.queue)
    }

    /// The leases.
    pub fn lease(&self) -> Arc<SqliteLease> {
        Arc::clone(&self.lease)
    }
}

impl From<SqliteBackend> for Backend {
    fn from(sqlite: SqliteBackend) -> Self {
        let upkeep = |part| Arc::new(SqliteUpkeep::new(&sqlite.config, part));
        let upkeep = Part::ALL.map(upkeep);
        let backend = Self::new(sqlite.repository, sqlite.queue, sqlite.lease);
        upkeep.into_iter().fold(backend, |backend, upkeep| backend.upkeep(upkeep))
    }
}
