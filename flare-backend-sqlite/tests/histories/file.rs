//! Takes a clock that a history moves; gives stores in a file of its own, without threads, so that a seed says
//! all that happens.

use std::sync::Arc;

use flare_backend_sqlite::{SqliteBackend, SqliteLease, SqliteQueue, SqliteRepository};
use flare_core::Backend;
use flare_core::port::Clock;

use crate::support::Scratch;

/// A file, under the name that histories know their store by. Gone with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBackend {
    file: SqliteBackend,
    _scratch: Arc<Scratch>,
}

impl MemoryBackend {
    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let scratch = Scratch::fleeting();
        let config = scratch.config().clock(clock).inline();
        let file = SqliteBackend::with_config(&config).unwrap();
        Self { file, _scratch: Arc::new(scratch) }
    }

    pub(crate) fn repository(&self) -> Arc<SqliteRepository> {
        self.file.repository()
    }

    pub(crate) fn queue(&self) -> Arc<SqliteQueue> {
        self.file.queue()
    }

    pub(crate) fn lease(&self) -> Arc<SqliteLease> {
        self.file.lease()
    }
}

impl From<MemoryBackend> for Backend {
    fn from(memory: MemoryBackend) -> Self {
        memory.file.into()
    }
}
