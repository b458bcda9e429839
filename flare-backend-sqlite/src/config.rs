//! Takes the host's wishes; gives how the file is opened and what it is held to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flare_core::port::Clock;

use crate::engine::Options;
use crate::file::FileSystem;
use crate::schema::{MIGRATIONS, Migration};
use crate::time::Machine;

/// Where the file is, and how it is used.
///
/// ```
/// use std::time::Duration;
/// use flare_backend_sqlite::SqliteConfig;
///
/// let config = SqliteConfig::new("flare.db").readers(2).timeout(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct SqliteConfig {
    path: PathBuf,
    timeout: Duration,
    readers: usize,
    max_content: usize,
    clock: Option<Arc<dyn Clock>>,
    inline: bool,
    file_system: Option<FileSystem>,
    migrations: &'static [Migration],
}

impl SqliteConfig {
    /// The file at `path`, which is made if it is not there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            timeout: Duration::from_secs(10),
            readers: 2,
            max_content: 16 << 20,
            clock: None,
            inline: false,
            file_system: None,
            migrations: MIGRATIONS,
        }
    }

    /// The same, with calls that end within `timeout` (10 s).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same, with so many threads that read (2), each with a connection and up to 16 MiB of cache.
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// The same, with another limit on a single document (16 MiB).
    pub fn max_content(mut self, bytes: usize) -> Self {
        self.max_content = bytes;
        self
    }

    /// The same, on a clock of the caller's, for tests that move time by hand. All that have the file open
    /// must share it.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The same without threads: whoever calls does the work, at once. For tests in which nothing may
    /// happen beside.
    #[doc(hidden)]
    pub fn inline(mut self) -> Self {
        self.inline = true;
        self
    }

    /// The same, as if the file were on a file system of this name that machines share.
    #[doc(hidden)]
    pub fn on_shared_file_system(mut self, name: &str) -> Self {
        self.file_system = Some(FileSystem::Shared(name.to_owned()));
        self
    }

    /// The same, with these migrations instead of Flare's own.
    #[doc(hidden)]
    pub fn migrations(mut self, migrations: &'static [Migration]) -> Self {
        self.migrations = migrations;
        self
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn content_limit(&self) -> usize {
        self.max_content
    }

    pub(crate) fn options(&self) -> Options {
        let machine = match &self.clock {
            Some(clock) => Machine::with_clock(Arc::clone(clock)),
            None => Machine::this(),
        };
        Options {
            machine,
            timeout: self.timeout,
            readers: self.readers,
            inline: self.inline,
            file_system: self.file_system.clone(),
            migrations: self.migrations,
        }
    }
}
