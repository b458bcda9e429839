//! A host's own source keeps every clause of the contract, a test each: all its author has to write is
//! what publishes to it, and takes it away.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::Result;
use flare_core::model::{Checkpoint, ConsumerId, SourceSettings, Timestamp};
use flare_core::port::{Outgoing, Source, SourceConnector, SourceOpening};
use flare_examples::custom_source::Journal;
use flare_testkit::source::TrialBroker;
use flare_testkit::{Fixture, ManualClock};
use serde_json::json;

/// A journal that can be shut: its entries are kept aside meanwhile.
struct Orders {
    journal: Journal,
    aside: std::sync::Mutex<Option<Arc<Vec<Bytes>>>>,
}

impl Orders {
    async fn open_named(&self, name: &str, at: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        let settings = SourceSettings::new("journal", json!({ "name": name }))?;
        let opening = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
        self.journal.open(opening.checkpoints(at)).await
    }
}

#[async_trait]
impl TrialBroker for Orders {
    async fn open(&self, checkpoints: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        self.open_named("orders", checkpoints).await
    }

    async fn open_missing(&self) -> Result<Arc<dyn Source>> {
        self.open_named("missing", Vec::new()).await
    }

    async fn publish(&self, messages: Vec<Outgoing>) {
        let payloads = messages.into_iter().map(|message| message.payload);
        self.journal.change(|all| Arc::make_mut(all.as_mut().unwrap()).extend(payloads));
    }

    async fn left(&self) -> Vec<Bytes> {
        Vec::new()
    }

    async fn set_away(&self, _: bool) {
        let mut aside = self.aside.lock().unwrap();
        self.journal.change(|all| std::mem::swap(all, &mut aside));
    }
}

struct Journals(ManualClock);

#[async_trait]
impl Fixture for Journals {
    type Port = dyn TrialBroker;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn TrialBroker>, ()) {
        let journal = Journal::new(Arc::new(self.0.clone()));
        (Arc::new(Orders { journal, aside: std::sync::Mutex::default() }), ())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }
}

flare_testkit::source_suite!(Journals(ManualClock::new(Timestamp::EPOCH)));
