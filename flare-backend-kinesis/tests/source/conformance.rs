//! Streams of one shard and of three keep every clause of the contract, over a connection that can be cut.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::Result;
use flare_core::model::Checkpoint;
use flare_core::port::{Outgoing, Source};
use flare_testkit::source::{self, TrialBroker};
use flare_testkit::{Fixture, Trials};

use crate::support::{Proxy, Scratch, open};

/// Which streams a run is about.
struct Kinesis {
    endpoint: String,
    shards: i32,
}

struct TrialStream {
    scratch: Scratch,
    proxy: Proxy,
}

#[async_trait]
impl TrialBroker for TrialStream {
    async fn open(&self, checkpoints: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        open(&self.proxy.url, &self.scratch.stream, "oldest", checkpoints).await
    }

    async fn open_missing(&self) -> Result<Arc<dyn Source>> {
        open(&self.proxy.url, "t-missing", "oldest", Vec::new()).await
    }

    async fn publish(&self, messages: Vec<Outgoing>) {
        for message in messages {
            let key = message.group.unwrap_or_else(|| "none".to_owned());
            self.scratch.put(&key, message.payload.to_vec()).await;
        }
    }

    async fn left(&self) -> Vec<Bytes> {
        Vec::new()
    }

    async fn set_away(&self, away: bool) {
        self.proxy.set_cut(away);
    }
}

#[async_trait]
impl Fixture for Kinesis {
    type Port = dyn TrialBroker;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn TrialBroker>, ()) {
        let scratch = Scratch::new(&self.endpoint, self.shards).await;
        let proxy = Proxy::to(&self.endpoint).await;
        (Arc::new(TrialStream { scratch, proxy }), ())
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(500)
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("conformance")
        .suite("one", source::CLAUSES, |at| Kinesis { endpoint: at.to_owned(), shards: 1 })
        .suite("three", source::CLAUSES, |at| Kinesis { endpoint: at.to_owned(), shards: 3 })
}
