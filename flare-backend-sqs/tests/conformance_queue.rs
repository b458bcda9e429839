//! The queue on SQS keeps every clause of the contract, on a server that counts in whole seconds.

#![allow(clippy::expect_used, reason = "a test that fails panics")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_sqs::SqsQueue;
use flare_core::port::Queue;
use flare_testkit::{Fixture, Service, Trials, queue};
use support::Scratch;

struct Sqs(String);

#[async_trait]
impl Fixture for Sqs {
    type Port = dyn Queue;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Queue>, Scratch) {
        let scratch = Scratch::new(&self.0);
        let queue = SqsQueue::connect(scratch.config()).await.expect("the server answers");
        (Arc::new(queue), scratch)
    }

    fn tick(&self) -> Duration {
        Duration::from_secs(1)
    }
}

fn main() -> ExitCode {
    Trials::on(Service::Sqs).suite("", queue::CLAUSES, |uri| Sqs(uri.to_owned())).run()
}
