#![doc = include_str!("../README.md")]

mod config;
mod lease;
mod queue;
mod repository;
mod source;
mod time;
mod upkeep;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use flare_core::Backend;
use flare_core::port::{Clock, Part, SystemClock};

pub use config::MemoryConfig;
pub use lease::MemoryLease;
pub use queue::MemoryQueue;
pub use repository::MemoryRepository;
pub use source::MemoryBroker;

use time::StoreTime;
use upkeep::NoUpkeep;

/// The name errors carry.
const BACKEND: &str = "memory";

/// Repository, queue and leases of one process, in memory: gone when the process is.
///
/// As strict as the durable ones (visibility, redelivery, fencing, expiry), so that what passes
/// on it does not fail there. Clones share everything.
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    repository: Arc<MemoryRepository>,
    queue: Arc<MemoryQueue>,
    lease: Arc<MemoryLease>,
}

impl MemoryBackend {
    /// A backend on the system's clock with the default limits.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// A backend on a clock of the caller's, for tests that move time by hand.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::with_config(MemoryConfig::default(), clock)
    }

    /// A backend with limits of the caller's.
    pub fn with_config(config: MemoryConfig, clock: Arc<dyn Clock>) -> Self {
        let time = StoreTime::new(clock);
        Self {
            repository: Arc::new(MemoryRepository::new(&config, time.clone())),
            queue: Arc::new(MemoryQueue::new(&config, time.clone())),
            lease: Arc::new(MemoryLease::new(&config, time)),
        }
    }

    /// The repository.
    pub fn repository(&self) -> Arc<MemoryRepository> {
        Arc::clone(&self.repository)
    }

    /// The queue.
    pub fn queue(&self) -> Arc<MemoryQueue> {
        Arc::clone(&self.queue)
    }

    /// The leases.
    pub fn lease(&self) -> Arc<MemoryLease> {
        Arc::clone(&self.lease)
    }
}

impl From<MemoryBackend> for Backend {
    fn from(memory: MemoryBackend) -> Self {
        let backend = Self::new(memory.repository, memory.queue, memory.lease);
        Part::ALL
            .into_iter()
            .fold(backend, |backend, part| backend.upkeep(Arc::new(NoUpkeep(part))))
    }
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

// A panic while a lock is held leaves no half-made change behind: every change is made on a copy
// or by assignments that cannot panic. So a poisoned lock is as good as any.

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
