//! The queue on SQS keeps every clause of the contract, on a server that counts in whole seconds: standard
//! and FIFO, with the queues of slots (shared) and of lanes (isolated).

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Isolated, Scratch};
use async_trait::async_trait;
use flare_backend_sqs::SqsQueue;
use flare_core::port::Queue;
use flare_testkit::{Fixture, Trials, intercept, queue};

/// Which queues a run is about.
struct Sqs {
    endpoint: String,
    fifo: bool,
    isolated: bool,
}

impl Sqs {
    fn new(endpoint: &str, fifo: bool, isolated: bool) -> Self {
        Self { endpoint: endpoint.to_owned(), fifo, isolated }
    }
}

#[async_trait]
impl Fixture for Sqs {
    type Port = dyn Queue;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Queue>, Scratch) {
        let scratch = Scratch::new(&self.endpoint);
        let config = scratch.config().fifo(self.fifo);
        let queue = SqsQueue::connect(config).await.expect("the server answers");
        let queue: Arc<dyn Queue> = Arc::new(queue);
        match self.isolated {
            true => (Arc::new(intercept::queue(queue, Isolated)), scratch),
            false => (queue, scratch),
        }
    }

    fn tick(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("conformance")
        .suite("standard_shared", queue::CLAUSES, |at| Sqs::new(at, false, false))
        .suite("standard_isolated", queue::CLAUSES, |at| Sqs::new(at, false, true))
        .suite("fifo_shared", queue::CLAUSES, |at| Sqs::new(at, true, false))
        .suite("fifo_isolated", queue::CLAUSES, |at| Sqs::new(at, true, true))
}
