//! The leases in a file keep every clause of the contract: with its threads by the machine's clock,
//! without threads by a clock that the tests move; and through two handles, which know of each other what two
//! processes would.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_sqlite::SqliteBackend;
use flare_core::model::Timestamp;
use flare_core::port::Lease;
use flare_testkit::intercept::several;
use flare_testkit::{Fixture, ManualClock};

use crate::support::Scratch;

struct Threaded;

#[async_trait]
impl Fixture for Threaded {
    type Port = dyn Lease;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Lease>, Scratch) {
        let scratch = Scratch::new();
        (scratch.open().lease(), scratch)
    }

    /// Leases end to the millisecond; what takes longer is a busy machine.
    fn tick(&self) -> Duration {
        Duration::from_millis(150)
    }
}

struct Inline(ManualClock);

impl Inline {
    fn new() -> Self {
        Self(ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)))
    }
}

#[async_trait]
impl Fixture for Inline {
    type Port = dyn Lease;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Lease>, Scratch) {
        let scratch = Scratch::new();
        let config = scratch.config().clock(Arc::new(self.0.clone())).inline();
        (SqliteBackend::with_config(&config).unwrap().lease(), scratch)
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }
}

/// Two handles of one file.
struct TwoHandles;

#[async_trait]
impl Fixture for TwoHandles {
    type Port = dyn Lease;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Lease>, Scratch) {
        let scratch = Scratch::new();
        let config = scratch.config();
        let handle = || SqliteBackend::with_config(&config).unwrap().lease();
        let both: [Arc<dyn Lease>; 2] = [handle(), handle()];
        (Arc::new(several(both)), scratch)
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(150)
    }
}

mod two_handles {
    use super::*;
    flare_testkit::lease_suite!(TwoHandles);
}

mod threaded {
    use super::*;
    flare_testkit::lease_suite!(Threaded);
}

mod inline {
    use super::*;
    flare_testkit::lease_suite!(Inline::new());
}
