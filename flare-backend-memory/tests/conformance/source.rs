//! Queues and streams of the broker in memory keep every clause of the contract, by a clock that the tests move.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_backend_memory::MemoryBroker;
use flare_core::Result;
use flare_core::model::{Checkpoint, ConsumerId, SourceSettings, Timestamp};
use flare_core::port::{Outgoing, Source, SourceConnector, SourceOpening};
use flare_testkit::source::TrialBroker;
use flare_testkit::{Fixture, ManualClock};
use serde_json::json;

/// What is pulled from: a queue or a stream.
struct Memory {
    clock: ManualClock,
    kind: &'static str,
}

impl Memory {
    fn new(kind: &'static str) -> Self {
        let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
        Self { clock, kind }
    }
}

struct Topic {
    broker: MemoryBroker,
    kind: &'static str,
}

impl Topic {
    async fn open_named(&self, name: &str, at: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        let settings = SourceSettings::new("memory", json!({ self.kind: name })).unwrap();
        let opening = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
        self.broker.open(opening.checkpoints(at)).await
    }
}

#[async_trait]
impl TrialBroker for Topic {
    async fn open(&self, checkpoints: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        self.open_named("orders", checkpoints).await
    }

    async fn open_missing(&self) -> Result<Arc<dyn Source>> {
        self.open_named("missing", Vec::new()).await
    }

    async fn publish(&self, messages: Vec<Outgoing>) {
        for message in messages {
            self.broker.publish("orders", message).unwrap();
        }
    }

    async fn left(&self) -> Vec<Bytes> {
        self.broker.left("orders").unwrap()
    }

    async fn set_away(&self, away: bool) {
        self.broker.set_away(away);
    }
}

#[async_trait]
impl Fixture for Memory {
    type Port = dyn TrialBroker;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn TrialBroker>, ()) {
        let broker = MemoryBroker::with_clock(Arc::new(self.clock.clone()));
        match self.kind {
            "queue" => broker.create_queue("orders"),
            _ => broker.create_stream("orders"),
        }
        (Arc::new(Topic { broker, kind: self.kind }), ())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }
}

mod queue {
    use super::Memory;

    flare_testkit::source_suite!(Memory::new("queue"));
}

mod stream {
    use super::Memory;

    flare_testkit::source_suite!(Memory::new("stream"));
}

#[test]
fn settings_say_which_of_both_and_where_a_stream_begins() {
    let broker = MemoryBroker::new();
    for (settings, refused) in [
        (json!({"queue": "orders"}), None),
        (json!({"stream": "orders"}), None),
        (json!({"stream": "orders", "from": "latest"}), None),
        (json!({}), Some("memory.queue: is required")),
        (
            json!({"queue": "a", "stream": "b"}),
            Some("memory.stream: a source is a queue or a stream"),
        ),
        (json!({"queue": "a", "from": "latest"}), Some("memory.from: is a setting of streams")),
        (json!({"stream": "a", "from": "now"}), Some("memory.from: must be oldest or latest")),
        (json!({"queue": "a", "prefetch": 3}), Some("memory.prefetch: there is no such setting")),
    ] {
        let settings = SourceSettings::new("memory", settings).unwrap();
        let said = broker.check(&settings).err().map(|invalid| invalid.to_string());
        assert_eq!(said.as_deref(), refused, "{settings:?}");
    }
}
