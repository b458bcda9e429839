//! Durable queues on RabbitMQ, as bare lapin has them: given as many ahead as Flare is, each acknowledged by itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_rabbitmq::{RabbitMqConfig, RabbitMqConnector};
use flare_core::model::SourceSettings;
use flare_core::port::SourceConnector;
use futures::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};

use super::Broker;
use crate::Result;
use crate::mongo::timed;

const MESSAGES: usize = 20_000;
/// What the broker gives ahead, on both sides.
const PREFETCH: u16 = 200;

pub(super) struct OnRabbitMq {
    uri: String,
    _connection: Connection,
    channel: Channel,
}

impl OnRabbitMq {
    pub(super) async fn make() -> Result<Self> {
        let uri = std::env::var("FLARE_TEST_RABBITMQ_URI").map_err(
            |_| "needs a broker: scripts/services up rabbitmq && eval \"$(scripts/services env rabbitmq)\"",
        )?;
        let connection = Connection::connect(&uri, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Self { uri, _connection: connection, channel })
    }
}

#[async_trait]
impl Broker for OnRabbitMq {
    fn connector(&self) -> Result<Arc<dyn SourceConnector>> {
        let config = RabbitMqConfig::new(self.uri.as_str());
        Ok(Arc::new(RabbitMqConnector::new().connection("bench", config)?))
    }

    fn settings(&self, queue: &str) -> Result<SourceSettings> {
        let settings = serde_json::json!({
            "connection": "bench", "queue": queue, "prefetch": PREFETCH,
        });
        Ok(SourceSettings::new("rabbitmq", settings)?)
    }

    fn messages(&self) -> usize {
        MESSAGES
    }

    async fn fill(&self, queue: &str, messages: Vec<String>) -> Result<()> {
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        self.channel.queue_declare(queue.into(), durable, FieldTable::default()).await?;
        let mut confirms = Vec::with_capacity(messages.len());
        for message in messages {
            let persistent = BasicProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions::default();
            let body = message.as_bytes();
            confirms.push(
                self.channel
                    .basic_publish("".into(), queue.into(), options, body, persistent)
                    .await?,
            );
        }
        for confirm in confirms {
            confirm.await?;
        }
        Ok(())
    }

    async fn take(&self, queue: &str, messages: usize) -> Result<Duration> {
        let connection = Connection::connect(&self.uri, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
        let (queue, name) = (queue.into(), "bare".into());
        let (options, none) = (BasicConsumeOptions::default(), FieldTable::default());
        let mut consumer = channel.basic_consume(queue, name, options, none).await?;
        let taking = async {
            for _ in 0..messages {
                let delivery = consumer.next().await.ok_or("the queue has ended")??;
                delivery.ack(BasicAckOptions::default()).await?;
            }
            // Answered after all that was said before.
            channel.basic_cancel("bare".into(), BasicCancelOptions::default()).await?;
            Ok(())
        };
        let (time, ()) = timed(taking).await?;
        connection.close(200, "done".into()).await?;
        Ok(time)
    }

    async fn remove(&self, queue: &str) -> Result<()> {
        let options = QueueDeleteOptions::default();
        self.channel.queue_delete(queue.into(), options).await?;
        Ok(())
    }
}
