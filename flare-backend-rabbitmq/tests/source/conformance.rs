//! Classic and quorum queues keep every clause of the contract, over a connection that can be cut.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_backend_rabbitmq::RabbitMqConfig;
use flare_core::Result;
use flare_core::model::Checkpoint;
use flare_core::port::{Outgoing, Source};
use flare_testkit::source::{self, TrialBroker};
use flare_testkit::{Fixture, Trials};

use crate::support::{Proxy, Scratch, open};

/// Which queues a run is about.
struct RabbitMq {
    uri: String,
    kind: &'static str,
}

struct TrialQueue {
    uri: String,
    scratch: Scratch,
    proxy: Proxy,
    opened: Mutex<Vec<Weak<dyn Source>>>,
}

#[async_trait]
impl TrialBroker for TrialQueue {
    async fn open(&self, _: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        let config = RabbitMqConfig::new(self.proxy.uri(&self.uri));
        let source = open(config, &self.scratch.queue).await?;
        self.opened.lock().unwrap().push(Arc::downgrade(&source));
        Ok(source)
    }

    async fn open_missing(&self) -> Result<Arc<dyn Source>> {
        open(RabbitMqConfig::new(self.proxy.uri(&self.uri)), "t-missing").await
    }

    async fn publish(&self, messages: Vec<Outgoing>) {
        self.scratch.publish(messages.into_iter().map(|message| message.payload)).await;
    }

    async fn left(&self) -> Vec<Bytes> {
        self.scratch.left().await
    }

    async fn set_away(&self, away: bool) {
        self.proxy.set_cut(away);
        let opened = self.opened.lock().unwrap().clone();
        for source in opened.iter().filter_map(Weak::upgrade).filter(|_| away) {
            // A loss takes a moment to be noticed; until then what was prefetched is handed out.
            while source.lag().await.is_ok() {}
        }
    }
}

#[async_trait]
impl Fixture for RabbitMq {
    type Port = dyn TrialBroker;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn TrialBroker>, ()) {
        let scratch = Scratch::new(&self.uri, self.kind).await;
        let proxy = Proxy::to(&self.uri).await;
        (
            Arc::new(TrialQueue {
                uri: self.uri.clone(),
                scratch,
                proxy,
                opened: Mutex::default(),
            }),
            (),
        )
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(500)
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("conformance")
        .suite("classic", source::CLAUSES, |at| RabbitMq { uri: at.to_owned(), kind: "classic" })
        .suite("quorum", source::CLAUSES, |at| RabbitMq { uri: at.to_owned(), kind: "quorum" })
}
