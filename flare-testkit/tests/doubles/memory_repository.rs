//! Takes a test double; gives a fixture with the memory backend behind it and time by hand.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_core::model::Timestamp;
use flare_core::port::Repository;
use flare_testkit::{Fixture, ManualClock};

/// Puts a double in front of a repository.
type Wrap = dyn Fn(Arc<dyn Repository>) -> Arc<dyn Repository> + Send + Sync;

/// A double in front of a fresh repository in memory.
pub(crate) struct InMemory {
    wrap: Box<Wrap>,
    clock: ManualClock,
}

impl InMemory {
    pub(crate) fn behind(
        wrap: impl Fn(Arc<dyn Repository>) -> Arc<dyn Repository> + Send + Sync + 'static,
    ) -> Self {
        let clock = ManualClock::new(Timestamp::from_unix_millis(1_700_000_000_000));
        Self { wrap: Box::new(wrap), clock }
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
        ((self.wrap)(backend.repository()), ())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}
