//! The queue on MongoDB keeps every clause of the contract, by the server's clock.

#![allow(clippy::expect_used, reason = "a test that fails panics")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_mongo::MongoQueue;
use flare_core::port::Queue;
use flare_testkit::{Fixture, Service, Trials, queue};
use support::Scratch;

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

fn main() -> ExitCode {
    Trials::on(Service::MongoDb).suite("", queue::CLAUSES, |uri| Mongo(uri.to_owned())).run()
}
