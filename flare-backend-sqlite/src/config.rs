//! Takes the host's wishes; gives how the file is opened and what it is held to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use flare_core::model::Invalid;
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields, default)
)]
#[must_use]
#[non_exhaustive]
pub struct SqliteConfig {
    /// The file, from the working directory on; it is made if it is not there.
    pub path: PathBuf,
    /// How long a call may take.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::duration"))]
    pub timeout: Duration,
    #[cfg_attr(feature = "serde", serde(skip))]
    readers: usize,
    #[cfg_attr(feature = "serde", serde(skip))]
    max_content: usize,
    #[cfg_attr(feature = "serde", serde(skip))]
    clock: Option<Arc<dyn Clock>>,
    #[cfg_attr(feature = "serde", serde(skip))]
    inline: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    file_system: Option<FileSystem>,
    #[cfg_attr(feature = "serde", serde(skip))]
    migrations: &'static [Migration],
    #[cfg_attr(feature = "serde", serde(skip))]
    synced: Option<Arc<AtomicU64>>,
}

impl Default for SqliteConfig {
    /// The file `flare.db` in the working directory.
    fn default() -> Self {
        Self::new("flare.db")
    }
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
            synced: None,
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

    /// The same, noting how many bytes of the log were on the disk when a commit last waited for it. For tests that
    /// cut the power, in which the log only grows.
    #[doc(hidden)]
    pub fn noting_synced(mut self, bytes: Arc<AtomicU64>) -> Self {
        self.synced = Some(bytes);
        self
    }

    /// Refuses settings that could not work, by their names.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.path.file_name().is_none() {
            let reason = "must be the path of a file, as \"/var/lib/flare/flare.db\"";
            return Err(Invalid::new("path", reason));
        }
        if self.timeout.is_zero() {
            return Err(Invalid::new("timeout", "must be longer than nothing"));
        }
        Ok(())
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
            synced: self.synced.clone(),
        }
    }
}
