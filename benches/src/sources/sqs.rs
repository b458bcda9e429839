//! Queues on SQS, as the bare SDK has them: ten messages a request, one request for more beside the one that deletes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use flare_backend_sqs::{SqsConfig, SqsConnector};
use flare_core::model::SourceSettings;
use flare_core::port::SourceConnector;

use super::Broker;
use crate::Result;
use crate::mongo::timed;
use crate::sqs::{endpoint, raw};

/// Messages per request.
const BATCH: usize = 10;
const MESSAGES: usize = 2_000;

pub(super) struct OnSqs {
    client: Client,
    endpoint: String,
}

impl OnSqs {
    pub(super) fn make() -> Result<Self> {
        let endpoint = endpoint()?;
        let client = raw::client(&endpoint);
        Ok(Self { client, endpoint })
    }
}

#[async_trait]
impl Broker for OnSqs {
    fn connector(&self) -> Result<Arc<dyn SourceConnector>> {
        let config = SqsConfig::new().endpoint(&self.endpoint).region("us-east-1");
        Ok(Arc::new(SqsConnector::new(config.credentials("bench", "bench"))))
    }

    fn settings(&self, queue: &str) -> Result<SourceSettings> {
        Ok(SourceSettings::new("sqs", serde_json::json!({ "queue": queue }))?)
    }

    fn messages(&self) -> usize {
        MESSAGES
    }

    async fn fill(&self, queue: &str, messages: Vec<String>) -> Result<()> {
        self.client.create_queue().queue_name(queue).send().await?;
        let url = self.url(queue).await?;
        for batch in messages.chunks(BATCH) {
            raw::send(&self.client, &url, batch).await?;
        }
        Ok(())
    }

    async fn take(&self, queue: &str, messages: usize) -> Result<Duration> {
        let url = self.url(queue).await?;
        let (time, ()) = timed(self.take_all(&url, messages)).await?;
        Ok(time)
    }

    async fn remove(&self, queue: &str) -> Result<()> {
        self.client.delete_queue().queue_url(self.url(queue).await?).send().await?;
        Ok(())
    }
}

impl OnSqs {
    async fn url(&self, queue: &str) -> Result<String> {
        let found = self.client.get_queue_url().queue_name(queue).send().await?;
        Ok(found.queue_url.ok_or("a queue has no address")?)
    }

    async fn take_all(&self, url: &str, messages: usize) -> Result<()> {
        let (mut received, mut taken) = (raw::receive(&self.client, url).await?, 0);
        while taken < messages {
            let (deleted, next) = tokio::join!(raw::delete(&self.client, url, &received), async {
                // Nothing is left to wait for once the last ones are here.
                match taken + received.len() < messages {
                    true => raw::receive(&self.client, url).await,
                    false => Ok(Vec::new()),
                }
            });
            taken += deleted?;
            received = next?;
        }
        Ok(())
    }
}
