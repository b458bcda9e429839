//! Somebody else's queue keeps every clause of the contract, a test each: all a backend's author
//! has to write is the fixture.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::Timestamp;
use flare_core::port::Queue;
use flare_examples::custom_queue::ListQueue;
use flare_testkit::{Fixture, ManualClock};

struct Lists(ManualClock);

impl Lists {
    fn new() -> Self {
        Self(ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000)))
    }
}

#[async_trait]
impl Fixture for Lists {
    type Port = dyn Queue;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Queue>, ()) {
        (Arc::new(ListQueue::new(Arc::new(self.0.clone()))), ())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }
}

flare_testkit::queue_suite!(Lists::new());
