//! The queue on PostgreSQL keeps every clause of the contract, by the server's clock; and through two handles,
//! which know of each other what two processes would; with notices, too.

use std::sync::Arc;
use std::time::Duration;

use crate::support::Scratch;
use async_trait::async_trait;
use flare_backend_postgres::PostgresQueue;
use flare_core::port::Queue;
use flare_testkit::intercept::several;
use flare_testkit::{Fixture, Trials, queue};

struct OnPostgres {
    uri: String,
    handles: usize,
    notify: bool,
}

impl OnPostgres {
    fn with(uri: &str, handles: usize, notify: bool) -> Self {
        Self { uri: uri.to_owned(), handles, notify }
    }
}

#[async_trait]
impl Fixture for OnPostgres {
    type Port = dyn Queue;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Queue>, Scratch) {
        let scratch = Scratch::new(&self.uri);
        let connect = async || {
            let config = scratch.config();
            let config = if self.notify { config.notify() } else { config };
            let queue = PostgresQueue::connect(config).await;
            Arc::new(queue.expect("the server answers")) as Arc<dyn Queue>
        };
        if self.handles == 1 {
            return (connect().await, scratch);
        }
        (Arc::new(several([connect().await, connect().await])), scratch)
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(300)
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("queue")
        .suite("", queue::CLAUSES, |uri| OnPostgres::with(uri, 1, false))
        .suite("two", queue::CLAUSES, |uri| OnPostgres::with(uri, 2, false))
        .suite("notified", queue::CLAUSES, |uri| OnPostgres::with(uri, 2, true))
}
