//! The repository in memory keeps every clause of the contract.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_core::model::Timestamp;
use flare_core::port::Repository;
use flare_testkit::{Fixture, ManualClock};

/// A repository whose time moves only when a clause says so.
struct InMemory {
    clock: ManualClock,
}

impl InMemory {
    fn new() -> Self {
        Self { clock: ManualClock::new(Timestamp::from_unix_millis(1_700_000_000_000)) }
    }
}

#[async_trait]
impl Fixture for InMemory {
    type Port = dyn Repository;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Repository>, ()) {
        // Small enough that "one byte more" costs nothing to try.
        let config = MemoryConfig::default().max_content(2 << 20);
        let backend = MemoryBackend::with_config(config, Arc::new(self.clock.clone()));
        (backend.repository(), ())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

flare_testkit::repository_suite!(InMemory::new());
