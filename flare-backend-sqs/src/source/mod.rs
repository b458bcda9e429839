//! Takes a consumer's settings; gives the queue of another service that they name, as a source of messages.

mod queue;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use flare_core::model::consumer::SourceEndpoints;
use flare_core::model::{Invalid, SourceSettings};
use flare_core::port::{Source, SourceConnector, SourceOpening};
use flare_core::{Error, Result};

use crate::client::silent;
use crate::{BACKEND, SqsConfig, error, guarded};

use queue::SqsSource;

/// The longest name of a queue.
const LONGEST_NAME: usize = 80;
/// What the names of FIFO queues end with.
const FIFO: &str = ".fifo";
/// How long a message is its receiver's, unless it is kept.
const VISIBILITY: Duration = Duration::from_secs(30);

/// Opens SQS queues for consumers: `{"sqs": {"queue", "region"?, "endpoint"?}}`.
///
/// Who we are there, and where, is said by an [`SqsConfig`] (its prefix, limits and kind are of Flare's own queues,
/// and say nothing here). A consumer may name another region, but only an endpoint that the host allows.
///
/// ```
/// use flare_backend_sqs::{SqsConfig, SqsConnector};
/// use flare_core::model::SourceSettings;
/// use flare_core::port::SourceConnector;
/// use serde_json::json;
///
/// let sqs = SqsConnector::new(SqsConfig::new().region("eu-central-1"));
/// sqs.check(&SourceSettings::new("sqs", json!({"queue": "orders.fifo"}))?)?;
/// let refused = sqs.check(&SourceSettings::new("sqs", json!({"queue": "a/b"}))?).unwrap_err();
/// assert_eq!(refused.field(), "sqs.queue");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug)]
pub struct SqsConnector {
    config: SqsConfig,
    endpoints: SourceEndpoints,
    visibility: Duration,
    /// A client for each region and endpoint: they share connections and credentials.
    clients: Mutex<HashMap<Place, Client>>,
}

/// A region and an endpoint, where a consumer names them.
type Place = (Option<String>, Option<String>);

impl SqsConnector {
    /// Queues of the SQS that `config` reaches.
    pub fn new(config: SqsConfig) -> Self {
        let endpoints = SourceEndpoints::new("SqsConnector::allow_endpoint");
        Self { config, endpoints, visibility: VISIBILITY, clients: Mutex::default() }
    }

    /// Lets consumers name this endpoint, wherever it is. Without a [`guard`](Self::guard) all others are refused, as a
    /// consumer could otherwise have Flare ask whatever the host can reach.
    #[must_use]
    pub fn allow_endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoints = self.endpoints.list(url);
        self
    }

    /// Has refusals name this in place of [`allow_endpoint`](Self::allow_endpoint): the key of a configuration whose
    /// users know no Rust.
    #[must_use]
    pub fn allowed_in(mut self, key: &'static str) -> Self {
        self.endpoints = self.endpoints.listed_in(key);
        self
    }

    /// Lets consumers name any endpoint whose address passes when it is dialled, such as those that
    /// flare-core's `http::Guard` lets pass.
    #[must_use]
    pub fn guard(
        mut self,
        passes: impl Fn(IpAddr) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.endpoints = self.endpoints.guard(passes);
        self
    }

    /// How long a message is its receiver's, unless it is kept (30 s; 1 s to 12 h): after a node died, so long its
    /// messages wait for the next.
    #[must_use]
    pub fn visibility(mut self, time: Duration) -> Self {
        self.visibility = time.clamp(Duration::from_secs(1), Duration::from_secs(12 * 3600));
        self
    }

    async fn client(&self, region: Option<&str>, endpoint: Option<&str>) -> Result<Client> {
        let place: Place = (region.map(str::to_owned), endpoint.map(str::to_owned));
        let known =
            self.clients.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let mut settings = self.config.elsewhere(region, endpoint).load().await?;
        if endpoint.is_some_and(|url| self.endpoints.is_judged(url)) {
            settings = settings.http_client(guarded::client(&self.endpoints));
        }
        let client = Client::from_conf(settings.build());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(clients.entry(place).or_insert(client).clone())
    }
}

#[async_trait]
impl SourceConnector for SqsConnector {
    fn kind(&self) -> &'static str {
        BACKEND
    }

    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        settings.only(&["queue", "region", "endpoint"])?;
        let queue = settings.text("queue")?;
        let name = queue.strip_suffix(FIFO).unwrap_or(queue);
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || queue.len() > LONGEST_NAME || !name.bytes().all(allowed) {
            let reason =
                "must be a queue's name: 1 to 80 of A-Z a-z 0-9 _ -, with .fifo at its end or not";
            return Err(settings.refuse("queue", reason));
        }
        settings.optional("region")?;
        self.endpoints.check(settings)
    }

    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        const OPERATION: &str = "open";
        let settings = &opening.settings;
        let refused = |invalid| Error::invalid(OPERATION, invalid);
        self.check(settings).map_err(refused)?;
        let queue = settings.text("queue").map_err(refused)?;
        let region = settings.optional("region").map_err(refused)?;
        let endpoint = settings.optional("endpoint").map_err(refused)?;
        if let Some(name) = endpoint.and_then(|url| self.endpoints.judged_name(url)) {
            // Judged again when it is dialled; here it is said what is wrong.
            guarded::addresses(&self.endpoints, &name).await?;
        }
        let client = self.client(region, endpoint).await?;
        let asked = client.get_queue_url().queue_name(queue).send().await;
        let found = asked.map_err(|error| error::from_sdk(OPERATION, &error))?;
        let url = found.queue_url.ok_or_else(|| silent(OPERATION, "an address"))?;
        let fifo = queue.ends_with(FIFO);
        let asked = client
            .get_queue_attributes()
            .queue_url(&url)
            .attribute_names(QueueAttributeName::RedrivePolicy)
            .send()
            .await;
        let attributes = asked.map_err(|error| error::from_sdk(OPERATION, &error))?.attributes;
        let redrives =
            attributes.is_some_and(|it| it.contains_key(&QueueAttributeName::RedrivePolicy));
        Ok(Arc::new(SqsSource::new(
            client,
            url,
            fifo,
            redrives,
            self.visibility,
            self.config.timeout,
        )))
    }
}
