//! The repository in a file keeps every clause of the contract: with its threads by the machine's clock,
//! without threads by a clock that the tests move; and through two handles, which know of each other what two
//! processes would.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_sqlite::SqliteBackend;
use flare_core::model::Timestamp;
use flare_core::port::Repository;
use flare_testkit::intercept::several;
use flare_testkit::{Fixture, ManualClock};

use crate::support::Scratch;

/// Small enough that "one byte more" costs nothing to try.
const MAX_CONTENT: usize = 2 << 20;

struct Threaded;

#[async_trait]
impl Fixture for Threaded {
    type Port = dyn Repository;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Repository>, Scratch) {
        let scratch = Scratch::new();
        let config = scratch.config().max_content(MAX_CONTENT);
        (SqliteBackend::with_config(&config).unwrap().repository(), scratch)
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(2)
    }
}

/// A repository whose time moves only when a clause says so.
struct Inline(ManualClock);

impl Inline {
    fn new() -> Self {
        Self(ManualClock::new(Timestamp::from_unix_millis(1_700_000_000_000)))
    }
}

#[async_trait]
impl Fixture for Inline {
    type Port = dyn Repository;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Repository>, Scratch) {
        let scratch = Scratch::new();
        let config = scratch.config().max_content(MAX_CONTENT);
        let config = config.clock(Arc::new(self.0.clone())).inline();
        (SqliteBackend::with_config(&config).unwrap().repository(), scratch)
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

/// Two handles of one file.
struct TwoHandles;

#[async_trait]
impl Fixture for TwoHandles {
    type Port = dyn Repository;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Repository>, Scratch) {
        let scratch = Scratch::new();
        let config = scratch.config().max_content(MAX_CONTENT);
        let handle = || SqliteBackend::with_config(&config).unwrap().repository();
        let both: [Arc<dyn Repository>; 2] = [handle(), handle()];
        (Arc::new(several(both)), scratch)
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(2)
    }
}

mod two_handles {
    use super::*;
    flare_testkit::repository_suite!(TwoHandles);
}

mod threaded {
    use super::*;
    flare_testkit::repository_suite!(Threaded);
}

mod inline {
    use super::*;
    flare_testkit::repository_suite!(Inline::new());
}
