//! The repository in memory keeps what the contract says of records that cannot be read, by a hook that
//! makes them so: values in memory are typed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::{MemoryBackend, MemoryRepository};
use flare_core::model::{RECORD_FORMAT, RecordName, Timestamp, WhyUnreadable};
use flare_core::port::Repository;
use flare_testkit::unreadable::{Spoilable, Spoiling};
use flare_testkit::{Fixture, ManualClock};

struct Memory(ManualClock);

impl Memory {
    fn new() -> Self {
        Self(ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)))
    }
}

struct InMemory(Arc<MemoryRepository>);

#[async_trait]
impl Spoilable for InMemory {
    fn repository(&self) -> Arc<dyn Repository> {
        self.0.clone()
    }

    async fn spoil(&self, record: RecordName, how: Spoiling) {
        let why = match how {
            Spoiling::Newer => Some(WhyUnreadable::Newer { needs: RECORD_FORMAT + 1 }),
            Spoiling::Damaged => Some(WhyUnreadable::Damaged { detail: "spoilt".to_owned() }),
            Spoiling::UnknownField => None,
        };
        self.0.spoil(record, why);
    }

    async fn has_unknown_field(&self, record: RecordName) -> bool {
        self.0.has_unknown_field(&record)
    }
}

#[async_trait]
impl Fixture for Memory {
    type Port = dyn Spoilable;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Spoilable>, ()) {
        let backend = MemoryBackend::with_clock(Arc::new(self.0.clone()));
        (Arc::new(InMemory(backend.repository())), ())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

flare_testkit::unreadable_suite!(Memory::new());
