//! The least that has to happen to a message: sent, received, deleted, ten at a time by the bare SDK.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, SendMessageBatchRequestEntry};
use aws_smithy_http_client::Builder;
use futures::future::try_join_all;

use crate::Result;
use crate::mongo::timed;

/// Requests under way at a time, each about a queue of its own; as many as Flare has workers on a
/// busy stage.
pub(super) const CONNECTIONS: usize = 4;
/// Messages per request.
const BATCH: usize = 10;
/// Batches in a round, on each connection.
const BATCHES: usize = 25;

pub(super) struct Raw {
    client: Client,
    queues: Vec<String>,
}

impl Raw {
    pub(super) async fn new(endpoint: &str, prefix: &str) -> Result<Self> {
        let client = client(endpoint);
        let mut queues = Vec::with_capacity(CONNECTIONS);
        for number in 0..CONNECTIONS {
            let create = client.create_queue().queue_name(format!("{prefix}-bare-{number}"));
            queues.push(create.send().await?.queue_url.ok_or("a queue has no address")?);
        }
        Ok(Self { client, queues })
    }

    /// Messages a second.
    pub(super) async fn round(&self) -> Result<f64> {
        let all = async { try_join_all(self.queues.iter().map(|queue| self.work(queue))).await };
        let (time, _) = timed(all).await?;
        Ok((CONNECTIONS * BATCHES * BATCH) as f64 / time.as_secs_f64())
    }

    async fn work(&self, queue: &str) -> Result<()> {
        // Of about a task's size.
        let bodies = vec!["x".repeat(300); BATCH];
        for _ in 0..BATCHES {
            send(&self.client, queue, &bodies).await?;
            let mut left = BATCH;
            while left > 0 {
                let received = receive(&self.client, queue).await?;
                left = left.saturating_sub(delete(&self.client, queue, &received).await?);
            }
        }
        Ok(())
    }
}

/// Sends a batch.
pub(crate) async fn send(client: &Client, queue: &str, bodies: &[String]) -> Result<()> {
    let entry = |(id, body): (usize, &String)| {
        let entry = SendMessageBatchRequestEntry::builder().id(id.to_string());
        entry.message_body(body).build()
    };
    let entries = bodies.iter().enumerate().map(entry);
    let entries = entries.collect::<std::result::Result<Vec<_>, _>>()?;
    client.send_message_batch().queue_url(queue).set_entries(Some(entries)).send().await?;
    Ok(())
}

/// Takes a batch, or nothing if none comes within a second.
pub(crate) async fn receive(client: &Client, queue: &str) -> Result<Vec<Message>> {
    let receive = client.receive_message().queue_url(queue);
    let received = receive.max_number_of_messages(10).wait_time_seconds(1).send().await?;
    Ok(received.messages.unwrap_or_default())
}

/// Deletes what was received; gives how much was.
pub(crate) async fn delete(client: &Client, queue: &str, messages: &[Message]) -> Result<usize> {
    if messages.is_empty() {
        return Ok(0);
    }
    let entry = |(id, message): (usize, &Message)| {
        let entry = DeleteMessageBatchRequestEntry::builder().id(id.to_string());
        entry.set_receipt_handle(message.receipt_handle.clone()).build()
    };
    let entries = messages.iter().enumerate().map(entry);
    let entries = entries.collect::<std::result::Result<Vec<_>, _>>()?;
    let delete = client.delete_message_batch().queue_url(queue);
    Ok(delete.set_entries(Some(entries)).send().await?.successful.len())
}

/// SQS without Flare in between.
pub(crate) fn client(endpoint: &str) -> Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(Builder::new().build_http())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"));
    Client::from_conf(config.build())
}

/// Deletes every queue whose name begins so.
pub(super) async fn tidy_up(endpoint: &str, prefix: &str) -> Result<()> {
    let client = client(endpoint);
    let listed = client.list_queues().queue_name_prefix(prefix).send().await?;
    for queue in listed.queue_urls.unwrap_or_default() {
        client.delete_queue().queue_url(queue).send().await?;
    }
    Ok(())
}
