//! What every trial needs: a queue of its own on the real broker, gone afterwards, and a way to it that can be cut.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

pub(crate) mod own_broker;
mod proxy;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use flare_backend_rabbitmq::{RabbitMqConfig, RabbitMqConnector};
use flare_core::Result;
use flare_core::model::{ConsumerId, SourceSettings};
use flare_core::port::{Source, SourceConnector, SourceOpening};
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
    QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
pub(crate) use proxy::Proxy;
use serde_json::json;

/// RabbitMQ without Flare in between.
pub(crate) async fn raw(uri: &str) -> (Connection, Channel) {
    let connection = Connection::connect(uri, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    (connection, channel)
}

/// A queue that no other trial uses, and the one where what is refused goes.
#[derive(Debug)]
pub(crate) struct Scratch {
    uri: String,
    pub(crate) queue: String,
    _connection: Connection,
    pub(crate) channel: Channel,
}

impl Scratch {
    /// A queue of this type, `classic` or `quorum`.
    pub(crate) async fn new(uri: &str, kind: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        #[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let queue = format!("t-{:x}-{now:x}-{count}", std::process::id());
        let mut failures = 0;
        loop {
            let (connection, channel) = raw(uri).await;
            match declare_both(&channel, &queue, kind).await {
                Ok(()) => {
                    let uri = uri.to_owned();
                    return Self { uri, queue, _connection: connection, channel };
                }
                // A broker that is busy gives up on a quorum queue, with an internal error.
                Err(error) => {
                    failures += 1;
                    assert!(failures < 10 && kind == "quorum", "{error}");
                }
            }
        }
    }

    fn left_queue(&self) -> String {
        left_queue(&self.queue)
    }

    /// Publishes, and waits until the broker has it.
    pub(crate) async fn publish(&self, bodies: impl IntoIterator<Item = Bytes>) {
        let mut confirms = Vec::new();
        for body in bodies {
            let (exchange, queue) = ("".into(), self.queue.as_str().into());
            let persistent = BasicProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions::default();
            let sent = self.channel.basic_publish(exchange, queue, options, &body, persistent);
            confirms.push(sent.await.unwrap());
        }
        for confirm in confirms {
            confirm.await.unwrap();
        }
    }

    /// What was refused.
    pub(crate) async fn left(&self) -> Vec<Bytes> {
        let (_connection, channel) = raw(&self.uri).await;
        let mut left = Vec::new();
        let name = self.left_queue();
        while let Some(message) =
            channel.basic_get(name.as_str().into(), BasicGetOptions::default()).await.unwrap()
        {
            left.push(Bytes::from(message.delivery.data));
        }
        // Not acknowledged: they are there again when the connection ends.
        left
    }

    pub(crate) async fn delete(&self) {
        let options = QueueDeleteOptions::default();
        self.channel.queue_delete(self.queue.as_str().into(), options).await.unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (uri, queues) = (self.uri.clone(), [self.left_queue(), self.queue.clone()]);
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let options = ConnectionProperties::default();
                let channel = Connection::connect(&uri, options).await?.create_channel().await?;
                for queue in queues {
                    channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await?;
                }
                lapin::Result::Ok(())
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not delete {}: {error}", self.queue);
        }
    }
}

/// Where what is refused of a queue goes.
fn left_queue(queue: &str) -> String {
    format!("{queue}-left")
}

async fn declare_both(channel: &Channel, queue: &str, kind: &str) -> lapin::Result<()> {
    let text = |text: &str| AMQPValue::LongString(LongString::from(text));
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let left = left_queue(queue);
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text(kind));
    channel.queue_declare(left.as_str().into(), durable, arguments.clone()).await?;
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(&left));
    channel.queue_declare(queue.into(), durable, arguments).await.map(drop)
}

/// Opens a source on a queue of the broker at `config`.
pub(crate) async fn open(config: RabbitMqConfig, queue: &str) -> Result<Arc<dyn Source>> {
    // Tests share their machine, so a call may take long.
    let config = config.timeout(Duration::from_secs(60));
    let connector = RabbitMqConnector::new().connection("main", config)?;
    let settings = json!({"connection": "main", "queue": queue});
    let settings = SourceSettings::new("rabbitmq", settings).unwrap();
    connector.open(SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings)).await
}
