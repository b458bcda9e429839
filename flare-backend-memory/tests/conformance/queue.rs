//! The queue in memory keeps every clause of the contract, by a clock that the tests move.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::model::Timestamp;
use flare_core::port::Queue;
use flare_testkit::{Fixture, ManualClock};

struct Memory(ManualClock);

impl Memory {
    fn new() -> Self {
        Self(ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)))
    }
}

#[async_trait]
impl Fixture for Memory {
    type Port = dyn Queue;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Queue>, ()) {
        (MemoryBackend::with_clock(Arc::new(self.0.clone())).queue(), ())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }
}

flare_testkit::queue_suite!(Memory::new());
