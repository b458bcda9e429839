//! Takes a clock that a history moves; gives stores in a file of its own, without threads, so that a seed says
//! all that happens. The power of the machine they are on can be cut.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use flare_backend_sqlite::{
    SqliteBackend, SqliteConfig, SqliteLease, SqliteQueue, SqliteRepository,
};
use flare_core::Backend;
use flare_core::port::Clock;

use crate::support::Scratch;
use crate::support::disk::{Disk, WAYS, assert_sound};

/// A file, under the name that histories know their store by. Gone with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBackend {
    file: SqliteBackend,
    power: Arc<Power>,
    scratch: Arc<Scratch>,
}

/// What tells how much would be left of the log.
#[derive(Debug, Default)]
struct Power {
    /// Bytes that are on the disk.
    synced: Arc<AtomicU64>,
    /// Whoever reads an old state, so that the log is not begun anew and its length says it all.
    reader: Mutex<Option<rusqlite::Connection>>,
}

impl MemoryBackend {
    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::within(Scratch::fleeting(), clock)
    }

    fn within(scratch: Scratch, clock: Arc<dyn Clock>) -> Self {
        let power = Power::default();
        let config = config(&scratch, &clock).noting_synced(Arc::clone(&power.synced));
        let file = SqliteBackend::with_config(&config).unwrap();
        Self { file, power: Arc::new(power), scratch: Arc::new(scratch) }
    }

    /// From now on the power may go.
    pub(crate) fn lasting(&self) {
        let reader = self.scratch.connect();
        reader.execute_batch("BEGIN; SELECT * FROM store").unwrap();
        *self.power.reader.lock().unwrap() = Some(reader);
        // Whoever opened the file has waited for the disk last.
        self.power.synced.store(Disk::of(&self.scratch).log.len() as u64, Ordering::Relaxed);
    }

    /// What is left on the disk when the power goes, and how many bytes of it no sync had covered.
    pub(crate) fn cut(&self, random: &mut fastrand::Rng) -> (Scratch, usize) {
        let disk = Disk::of(&self.scratch);
        let synced = usize::try_from(self.power.synced.load(Ordering::Relaxed)).unwrap();
        let left = disk.spoilt(synced, random.usize(..WAYS), random).found();
        (left, disk.log.len() - synced)
    }

    /// The stores as a machine finds them that is started again with that. Starting takes a `moment`, as opening
    /// the file once does: no two of them are at the same time.
    pub(crate) fn on(left: Scratch, clock: Arc<dyn Clock>, moment: impl Fn()) -> Self {
        moment();
        // Whoever opens it first brings what is left of the log to its place.
        drop(SqliteBackend::with_config(&config(&left, &clock)).unwrap());
        assert_sound(&left.connect());
        moment();
        let found = Self::within(left, clock);
        found.lasting();
        found
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

/// How a history has a file opened.
fn config(scratch: &Scratch, clock: &Arc<dyn Clock>) -> SqliteConfig {
    scratch.config().clock(Arc::clone(clock)).inline()
}

impl From<MemoryBackend> for Backend {
    fn from(memory: MemoryBackend) -> Self {
        memory.file.into()
    }
}
