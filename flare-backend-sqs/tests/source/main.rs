//! Queues of others on SQS keep the contract of sources, standard and FIFO, also through a server that goes away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it is a test")]

#[path = "../support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use bytes::Bytes;
use flare_backend_sqs::{SqsConfig, SqsConnector};
use flare_core::model::{Checkpoint, ConsumerId, SourceSettings};
use flare_core::port::{
    CheckpointKeeper, Outgoing, Source, SourceConnector, SourceLag, SourceOpening,
};
use flare_core::{ErrorKind, Result};
use flare_testkit::source::{self, TrialBroker};
use flare_testkit::{Fixture, LinkMode, Service, TcpLink, Trials};
use serde_json::json;
use support::Scratch;

/// Shorter than by itself, so that trials need not wait for long.
const VISIBILITY: Duration = Duration::from_secs(8);

fn main() -> ExitCode {
    Trials::on(Service::SQS)
        .at_a_time(16)
        .of("conformance")
        .suite("standard", source::CLAUSES, |at| Sqs::new(at, false, true))
        .suite("fifo", source::CLAUSES, |at| Sqs::new(at, true, true))
        .suite("fifo_without_dead_letters", source::CLAUSES, |at| Sqs::new(at, true, false))
        .of("source")
        .test("facts_follow_the_queue", facts_follow_the_queue)
        .test("a_message_says_when_it_was_sent", a_message_says_when_it_was_sent)
        .test("settings_are_refused_by_field", settings_are_refused_by_field)
        .test(
            "an_endpoint_that_a_consumer_names_passes_the_guard",
            an_endpoint_that_a_consumer_names_passes_the_guard,
        )
        .run()
}

/// Which kind of queue a run is about.
struct Sqs {
    endpoint: String,
    fifo: bool,
    dead_letters: bool,
}

impl Sqs {
    fn new(endpoint: &str, fifo: bool, dead_letters: bool) -> Self {
        Self { endpoint: endpoint.to_owned(), fifo, dead_letters }
    }
}

/// A queue of another service, and its dead letters.
struct Orders {
    connector: SqsConnector,
    client: Client,
    name: String,
    url: String,
    dead: Option<String>,
    fifo: bool,
    sent: AtomicU64,
    link: TcpLink,
}

impl Orders {
    async fn create(scratch: &Scratch, at: &Sqs) -> Self {
        let client = support::raw(&at.endpoint);
        let name = |what: &str| match at.fifo {
            true => format!("{}-{what}.fifo", scratch.prefix),
            false => format!("{}-{what}", scratch.prefix),
        };
        let mut attributes = HashMap::new();
        if at.fifo {
            attributes.insert(QueueAttributeName::FifoQueue, "true".to_owned());
        }
        let mut dead = None;
        if at.dead_letters {
            let create = client.create_queue().queue_name(name("dead"));
            let made = create.set_attributes(Some(attributes.clone())).send().await.unwrap();
            let url = made.queue_url.unwrap();
            let arn = QueueAttributeName::QueueArn;
            let asked = client.get_queue_attributes().queue_url(&url).attribute_names(arn.clone());
            let arn = asked.send().await.unwrap().attributes.unwrap().remove(&arn).unwrap();
            // More often than any trial gives a message back.
            let policy = json!({"deadLetterTargetArn": arn, "maxReceiveCount": "8"});
            attributes.insert(QueueAttributeName::RedrivePolicy, policy.to_string());
            dead = Some(url);
        }
        let create = client.create_queue().queue_name(name("orders"));
        let made = create.set_attributes(Some(attributes)).send().await.unwrap();
        let link = TcpLink::to(&at.endpoint).await;
        let config = SqsConfig::new()
            .endpoint(link.url())
            .region("us-east-1")
            .credentials("test", "test")
            .timeout(Duration::from_secs(60));
        Self {
            connector: SqsConnector::new(config).visibility(VISIBILITY),
            client,
            name: name("orders"),
            url: made.queue_url.unwrap(),
            dead,
            fifo: at.fifo,
            sent: AtomicU64::new(0),
            link,
        }
    }

    async fn open_named(&self, name: &str) -> Result<Arc<dyn Source>> {
        let settings = SourceSettings::new("sqs", json!({ "queue": name })).unwrap();
        self.connector.open(SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings)).await
    }
}

#[async_trait]
impl TrialBroker for Orders {
    async fn open(&self, checkpoints: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        assert_eq!(checkpoints, [], "SQS keeps them");
        self.open_named(&self.name).await
    }

    async fn open_missing(&self) -> Result<Arc<dyn Source>> {
        self.open_named(&self.name.replace("orders", "missing")).await
    }

    async fn publish(&self, messages: Vec<Outgoing>) {
        for message in messages {
            let body = String::from_utf8(message.payload.to_vec()).unwrap();
            let mut send = self.client.send_message().queue_url(&self.url).message_body(body);
            if self.fifo {
                let id = self.sent.fetch_add(1, Ordering::Relaxed).to_string();
                send = send.message_group_id(message.group.unwrap()).message_deduplication_id(id);
            }
            send.send().await.unwrap();
        }
    }

    async fn left(&self) -> Vec<Bytes> {
        let mut left = Vec::new();
        for url in std::iter::once(&self.url).chain(&self.dead) {
            let receive = self.client.receive_message().queue_url(url).visibility_timeout(0);
            let received = receive.max_number_of_messages(10).send().await.unwrap();
            let messages = received.messages.unwrap_or_default().into_iter();
            left.extend(messages.map(|message| message.body.unwrap().into()));
        }
        left
    }

    async fn set_away(&self, away: bool) {
        self.link.set(if away { LinkMode::Reset } else { LinkMode::Open });
    }
}

#[async_trait]
impl Fixture for Sqs {
    type Port = dyn TrialBroker;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn TrialBroker>, Scratch) {
        let scratch = Scratch::new(&self.endpoint);
        (Arc::new(Orders::create(&scratch, self).await), scratch)
    }
}

async fn facts_follow_the_queue(endpoint: String) {
    for (fifo, dead_letters, leaves) in
        [(false, false, true), (false, true, true), (true, true, true), (true, false, false)]
    {
        let scratch = Scratch::new(&endpoint);
        let orders = Orders::create(&scratch, &Sqs::new(&endpoint, fifo, dead_letters)).await;
        let facts = orders.open(Vec::new()).await.unwrap().facts();
        assert_eq!((facts.max_batch, facts.ordered, facts.leaves), (10, fifo, leaves));
        assert_eq!(facts.checkpoints, CheckpointKeeper::Broker);
        assert_eq!(facts.kept_for, Some(VISIBILITY));
    }
}

async fn a_message_says_when_it_was_sent(endpoint: String) {
    let scratch = Scratch::new(&endpoint);
    let orders = Orders::create(&scratch, &Sqs::new(&endpoint, false, false)).await;
    let source = orders.open(Vec::new()).await.unwrap();
    assert_eq!(source.lag().await.unwrap(), Some(SourceLag::Messages(0)));
    orders.publish(vec![Outgoing::new("{}")]).await;
    let received = source.receive(10, Duration::from_secs(20)).await.unwrap();
    assert!(received[0].sent_at.is_some() && !received[0].id.is_empty(), "{received:?}");
    assert_eq!(source.lag().await.unwrap(), Some(SourceLag::Messages(1)), "it is not settled");
}

/// A queue at an endpoint that a consumer names, by name and by address, behind a guard that lets it pass or does not.
async fn an_endpoint_that_a_consumer_names_passes_the_guard(endpoint: String) {
    let scratch = Scratch::new(&endpoint);
    let orders = Orders::create(&scratch, &Sqs::new(&endpoint, false, false)).await;
    let config = SqsConfig::new().region("us-east-1").credentials("test", "test");
    let open = async |url: &str, passes: bool| {
        let guard = move |address: IpAddr| passes.then_some(()).ok_or(format!("not {address}"));
        let settings = json!({"queue": orders.name, "endpoint": url});
        let settings = SourceSettings::new("sqs", settings).unwrap();
        let opening = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
        SqsConnector::new(config.clone()).guard(guard).open(opening).await
    };
    let by_name = endpoint.replace("127.0.0.1", "localhost");
    assert_ne!(by_name, endpoint);
    for url in [&endpoint, &by_name] {
        let source = open(url, true).await.unwrap();
        assert!(source.receive(1, Duration::ZERO).await.unwrap().is_empty());
        let refused = open(url, false).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(refused.to_string().contains("not "), "{refused}");
    }
}

async fn settings_are_refused_by_field(_: String) {
    let connector = SqsConnector::new(SqsConfig::new().region("eu-central-1"))
        .allow_endpoint("http://sqs.example:4566");
    for (settings, refused) in [
        (json!({"queue": "orders"}), None),
        (json!({"queue": "orders.fifo", "region": "us-east-1"}), None),
        (json!({"queue": "orders", "endpoint": "http://sqs.example:4566"}), None),
        (json!({}), Some("sqs.queue")),
        (json!({"queue": ".fifo"}), Some("sqs.queue")),
        (json!({"queue": "a.b"}), Some("sqs.queue")),
        (json!({"queue": "x".repeat(81)}), Some("sqs.queue")),
        (json!({"queue": "orders", "region": 7}), Some("sqs.region")),
        (json!({"queue": "orders", "endpoint": "http://169.254.169.254/"}), Some("sqs.endpoint")),
        (json!({"queue": "orders", "secret": "x"}), Some("sqs.secret")),
    ] {
        let settings = SourceSettings::new("sqs", settings).unwrap();
        let said = connector.check(&settings).err();
        assert_eq!(said.as_ref().map(|invalid| invalid.field()), refused, "{settings:?}");
        if refused.is_some() {
            let opening = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
            let error = connector.open(opening).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        }
    }
}
