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
use crate::names::Names;
use crate::requests::Counter;
use crate::{BACKEND, error};

/// The tag that says whose a queue is; its value is the prefix.
const TAG: &str = "flare:prefix";

/// The tag that says which subscription the queue of a lane belongs to.
const SUBSCRIPTION_TAG: &str = "flare:subscription";

/// How long SQS keeps a message: a day, in seconds. An older wake-up says nothing that the stores do
/// not know, and must not outlive the tombstone of what it is about.
const RETENTION: &str = "86400";

/// SQS, as one Flare sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) requests: Counter,
    pub(crate) names: Names,
    timeout: Duration,
    pub(crate) message_limit: usize,
    pub(crate) max_receives: u32,
    pub(crate) slots: u32,
    /// Addresses of queues that were there, and ours.
    urls: Mutex<HashMap<QueueName, String>>,
    /// What SQS calls the queues where dead letters go: of standard queues, and of FIFO ones.
    pub(crate) dead_letters: Mutex<HashMap<bool, String>>,
}

impl Connection {
    /// Finds SQS, and makes sure that it answers us.
    pub(crate) async fn open(config: &SqsConfig) -> Result<Self> {
        let requests = Counter::default();
        let settings = config.load().await?.interceptor(requests.clone());
        let connection = Self {
            client: Client::from_conf(settings.build()),
            requests,
            names: Names::new(&config.prefix, config.fifo),
            timeout: config.timeout,
            message_limit: config.message_limit,
            max_receives: config.max_receives,
            slots: config.slots,
            urls: Mutex::default(),
            dead_letters: Mutex::default(),
        };
        connection.page("connect", 1, None).await?;
        Ok(connection)
    }

    /// Where a queue is.
    pub(crate) async fn url(&self, operation: &'static str, queue: &QueueName) -> Result<String> {
        if let Some(url) = self.urls().get(queue) {
            return Ok(url.clone());
        }
        let url = self.find(operation, &self.names.of(queue)).await?;
        self.urls().insert(queue.clone(), url.clone());
        Ok(url)
    }

    /// Where the queue of a name is, which must be ours.
    pub(crate) async fn find(&self, operation: &'static str, name: &str) -> Result<String> {
        let asked = self.client.get_queue_url().queue_name(name).send().await;
        let found = asked.map_err(|error| error::from_sdk(operation, &error))?;
        let url = found.queue_url.ok_or_else(|| silent(operation, "an address"))?;
        if self.is_ours(operation, &url).await? {
            return Ok(url);
        }
        let prefix = self.names.prefix();
        let detail = format!("queue {name} lacks the tag {TAG}={prefix}, so it is not ours");
        Err(Error::new(ErrorKind::Conflict, operation).with_backend(BACKEND).with_detail(detail))
    }

    /// Makes a queue that was not there a moment ago.
    pub(crate) async fn make(&self, operation: &'static str, queue: &QueueName) -> Result<()> {
        let made = match self.try_make(operation, queue).await {
            // Dead letters have nowhere to go, though they had once.
            Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound) => {
                self.forget_dead_letters();
                self.try_make(operation, queue).await
            }
            made => made,
        };
        self.urls().insert(queue.clone(), made?);
        Ok(())
    }

    async fn try_make(&self, operation: &'static str, queue: &QueueName) -> Result<String> {
        let attributes = self.attributes(operation, queue).await?;
        let subscription = match queue {
            QueueName::Lane(lane) => Some(lane.subscription.to_string()),
            _ => None,
        };
        let (name, fifo) = (self.names.of(queue), self.names.is_fifo(queue));
        self.create(operation, &name, fifo, attributes, subscription).await
    }

    /// What our settings say of a queue, and can be changed later.
    pub(crate) async fn attributes(
        &self,
        operation: &'static str,
        queue: &QueueName,
    ) -> Result<HashMap<QueueAttributeName, String>> {
        let redrive = self.redrive_policy(operation, self.names.is_fifo(queue)).await?;
        Ok(HashMap::from([
            (QueueAttributeName::MessageRetentionPeriod, RETENTION.to_owned()),
            (QueueAttributeName::MaximumMessageSize, self.message_limit.to_string()),
            (QueueAttributeName::RedrivePolicy, redrive),
        ]))
    }

    /// Creates the queue of a name, with our tags.
    pub(crate) async fn create(
        &self,
        operation: &'static str,
        name: &str,
        fifo: bool,
        mut attributes: HashMap<QueueAttributeName, String>,
        subscription: Option<String>,
    ) -> Result<String> {
        if fifo {
            // Groups are many, and each is slow: SQS counts them, and not the queue, for its limit.
            attributes.extend([
                (QueueAttributeName::FifoQueue, "true".to_owned()),
                (QueueAttributeName::DeduplicationScope, "messageGroup".to_owned()),
                (QueueAttributeName::FifoThroughputLimit, "perMessageGroupId".to_owned()),
            ]);
        }
        let mut tags = HashMap::from([(TAG.to_owned(), self.names.prefix().to_owned())]);
        tags.extend(subscription.map(|it| (SUBSCRIPTION_TAG.to_owned(), it)));
        let create = self.client.create_queue().queue_name(name).set_tags(Some(tags));
        let made = create.set_attributes(Some(attributes)).send().await;
        let made = made.map_err(|error| error::from_sdk(operation, &error))?;
        made.queue_url.ok_or_else(|| silent(operation, "an address"))
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
        let list = self.client.list_queues().queue_name_prefix(self.names.start()).max_results(max);
        let page = list.set_next_token(token).send().await;
        let page = page.map_err(|error| error::from_sdk(operation, &error))?;
        Ok((page.queue_urls.unwrap_or_default(), page.next_token))
    }

    /// Which queue of ours is at an address, if its name and tag say so. The tag of a queue that is
    /// known is not asked for again.
    pub(crate) async fn queue_at(
        &self,
        operation: &'static str,
        url: &str,
    ) -> Result<Option<QueueName>> {
        let Some(queue) = self.names.parse(url.rsplit('/').next().unwrap_or(url)) else {
            return Ok(None);
        };
        if self.urls().get(&queue).is_some_and(|known| known == url) {
            return Ok(Some(queue));
        }
        match self.is_ours(operation, url).await {
            Ok(true) => {
                self.urls().insert(queue.clone(), url.to_owned());
                Ok(Some(queue))
            }
            Ok(false) => Ok(None),
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
        Ok(tags.is_some_and(|tags| tags.get(TAG).is_some_and(|it| it == self.names.prefix())))
    }

    fn urls(&self) -> MutexGuard<'_, HashMap<QueueName, String>> {
        self.urls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// SQS answered, and left out what its answer is for.
pub(crate) fn silent(operation: &'static str, what: &str) -> Error {
    let detail = format!("the answer lacks {what}");
    Error::new(ErrorKind::Corrupt, operation).with_backend(BACKEND).with_detail(detail)
}
