//! What every test needs: a directory of its own, gone afterwards.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests"
)]

pub(crate) mod disk;
pub(crate) mod spoil;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_backend_sqlite::{SqliteBackend, SqliteConfig};

/// A directory that nobody else uses; removed with it.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// One that need not outlive the machine's power, where the system has such: nothing waits for a disk.
    pub(crate) fn fleeting() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory) } else { Self::new() }
    }

    fn below(folder: &Path) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("flare-sqlite-test-{}-{count}", std::process::id());
        let path = folder.join(name);
        // What a process of the same number left that was killed.
        _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Where the database is.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("flare.db")
    }

    /// How to open it. Tests share their machine, so a call may take long.
    pub(crate) fn config(&self) -> SqliteConfig {
        SqliteConfig::new(self.path()).timeout(Duration::from_secs(60))
    }

    pub(crate) fn open(&self) -> SqliteBackend {
        SqliteBackend::with_config(&self.config()).unwrap()
    }

    /// The file itself, for looking behind the port.
    pub(crate) fn connect(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        connection
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
