//! The queue on MongoDB keeps every clause of the contract, by the server's clock.

use std::sync::Arc;
use std::time::Duration;

use crate::support::Scratch;
use async_trait::async_trait;
use flare_backend_mongo::MongoQueue;
use flare_core::port::Queue;
use flare_testkit::{Fixture, Trials, queue};

struct Mongo(String);

#[async_trait]
impl Fixture for Mongo {
    type Port = dyn Queue;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Queue>, Scratch) {
        let scratch = Scratch::new(&self.0);
        let config = scratch.config().poll_every(Duration::from_millis(20));
        let queue = MongoQueue::connect(config).await.expect("the server answers");
        (Arc::new(queue), scratch)
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(300)
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("queue").suite("", queue::CLAUSES, |uri| Mongo(uri.to_owned()))
}
