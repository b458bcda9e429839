//! Takes settings; gives SQS, and the queues there that are ours: by prefix and by tag. What was
//! found once is remembered until SQS says that it is gone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::QueueAttributeName;
use flare_core::port::QueueName;
use flare_core::{Error, ErrorKind, Result};

use crate::config::SqsConfig;
use crate::{BACKEND, error};

/// The tag that says whose a queue is; its value is the prefix.
const TAG: &str = "flare:prefix";

/// How long SQS keeps a message at most: fourteen days, in seconds.
const RETENTION: &str = "1209600";

/// SQS, as one Flare sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    prefix: String,
    timeout: Duration,
    pub(crate) message_limit: usize,
    /// Addresses of queues that were there, and ours.
    urls: Mutex<HashMap<QueueName, String>>,
}

impl Connection {
    /// Finds SQS, and makes sure that it answers us.
    pub(crate) async fn open(config: &SqsConfig) -> Result<Self> {
        let connection = Self {
            client: Client::new(&config.load().await?),
            prefix: config.prefix.clone(),
            timeout: config.timeout,
            message_limit: config.message_limit,
            urls: Mutex::default(),
        };
        connection.page("connect", 1, None).await?;
        Ok(connection)
    }

    /// Where a queue is.
    pub(crate) async fn url(&self, operation: &'static str, queue: &QueueName) -> Result<String> {
        if let Some(url) = self.urls().get(queue) {
            return Ok(url.clone());
        }
        let name = self.name(queue);
        let asked = self.client.get_queue_url().queue_name(&name).send().await;
        let found = asked.map_err(|error| error::from_sdk(operation, &error))?;
        let url = found.queue_url.ok_or_else(|| silent(operation, "an address"))?;
        if !self.is_ours(operation, &url).await? {
            let detail =
                format!("queue {name} lacks the tag {TAG}={}, so it is not ours", self.prefix);
            return Err(Error::new(ErrorKind::Conflict, operation).backend(BACKEND).detail(detail));
        }
        self.urls().insert(queue.clone(), url.clone());
        Ok(url)
    }

    /// Makes a queue that was not there a moment ago.
    pub(crate) async fn make(&self, operation: &'static str, queue: &QueueName) -> Result<()> {
        let create = self.client.create_queue().queue_name(self.name(queue));
        let create = create
            .tags(TAG, &self.prefix)
            .attributes(QueueAttributeName::MessageRetentionPeriod, RETENTION)
            .attributes(QueueAttributeName::MaximumMessageSize, self.message_limit.to_string());
        let made = create.send().await.map_err(|error| error::from_sdk(operation, &error))?;
        let url = made.queue_url.ok_or_else(|| silent(operation, "an address"))?;
        self.urls().insert(queue.clone(), url);
        Ok(())
    }

    /// Forgets where a queue was if `error` says that it is gone.
    pub(crate) fn noticed(&self, queue: &QueueName, error: Error) -> Error {
        if error.kind() == ErrorKind::NotFound {
            self.forget(queue);
        }
        error
    }

    pub(crate) fn forget(&self, queue: &QueueName) {
        self.urls().remove(queue);
    }

    /// Addresses of queues that begin with our prefix, ours or not, and where the next ones are.
    pub(crate) async fn page(
        &self,
        operation: &'static str,
        max: i32,
        token: Option<String>,
    ) -> Result<(Vec<String>, Option<String>)> {
        let list = self.client.list_queues().queue_name_prefix(self.named("")).max_results(max);
        let page = list.set_next_token(token).send().await;
        let page = page.map_err(|error| error::from_sdk(operation, &error))?;
        Ok((page.queue_urls.unwrap_or_default(), page.next_token))
    }

    /// Which queue of ours is at an address, if its name and tag say so.
    pub(crate) async fn queue_at(
        &self,
        operation: &'static str,
        url: &str,
    ) -> Result<Option<QueueName>> {
        let Some(queue) = self.queue_named(url.rsplit('/').next().unwrap_or(url)) else {
            return Ok(None);
        };
        match self.is_ours(operation, url).await {
            Ok(ours) => Ok(ours.then_some(queue)),
            // Deleted since it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How long a request may take that itself waits for `wait`.
    pub(crate) fn patience(&self, wait: Duration) -> aws_sdk_sqs::config::Builder {
        let timeout = TimeoutConfig::builder().operation_timeout(self.timeout + wait).build();
        aws_sdk_sqs::Config::builder().timeout_config(timeout)
    }

    async fn is_ours(&self, operation: &'static str, url: &str) -> Result<bool> {
        let asked = self.client.list_queue_tags().queue_url(url).send().await;
        let tags = asked.map_err(|error| error::from_sdk(operation, &error))?.tags;
        Ok(tags.is_some_and(|tags| tags.get(TAG) == Some(&self.prefix)))
    }

    fn name(&self, queue: &QueueName) -> String {
        self.named(&queue.to_string())
    }

    fn named(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn queue_named(&self, name: &str) -> Option<QueueName> {
        name.strip_prefix(&self.prefix)?.strip_prefix('-')?.parse().ok()
    }

    fn urls(&self) -> MutexGuard<'_, HashMap<QueueName, String>> {
        self.urls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// SQS answered, and left out what its answer is for.
fn silent(operation: &'static str, what: &str) -> Error {
    let detail = format!("the answer lacks {what}");
    Error::new(ErrorKind::Corrupt, operation).backend(BACKEND).detail(detail)
}
