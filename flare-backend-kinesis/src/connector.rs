//! Takes a consumer's settings; gives the stream of another service that they name, as a source of messages.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use aws_sdk_kinesis::Client;
use flare_core::model::consumer::SourceEndpoints;
use flare_core::model::{Invalid, SourceSettings};
use flare_core::port::{Clock, Source, SourceConnector, SourceOpening, SystemClock};
use flare_core::{Error, Result};

use crate::BACKEND;
use crate::config::KinesisConfig;
use crate::guarded;
use crate::position;
use crate::source::KinesisSource;

/// The longest name of a stream.
const LONGEST_NAME: usize = 128;

/// A region and an endpoint, where they are not the host's own.
type ClientPlace = (Option<String>, Option<String>);

/// Opens Kinesis streams for consumers: `{"kinesis": {"stream", "from"?, "region"?, "endpoint"?}}`.
///
/// Who we are there, and where, is said by a [`KinesisConfig`]. A consumer may name another region, but only an
/// endpoint that the host allows.
///
/// ```
/// use flare_backend_kinesis::{KinesisConfig, KinesisConnector};
/// use flare_core::model::SourceSettings;
/// use flare_core::port::SourceConnector;
/// use serde_json::json;
///
/// let kinesis = KinesisConnector::new(KinesisConfig::new().region("eu-central-1"));
/// kinesis.check(&SourceSettings::new("kinesis", json!({"stream": "orders", "from": "oldest"}))?)?;
/// let refused = kinesis.check(&SourceSettings::new("kinesis", json!({"stream": "a/b"}))?).unwrap_err();
/// assert_eq!(refused.field(), "kinesis.stream");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug)]
pub struct KinesisConnector {
    config: KinesisConfig,
    endpoints: SourceEndpoints,
    /// A client for each region and endpoint: they share connections and credentials.
    clients: Mutex<HashMap<ClientPlace, Client>>,
}

impl KinesisConnector {
    /// Streams of the Kinesis that `config` reaches.
    pub fn new(config: KinesisConfig) -> Self {
        let endpoints = SourceEndpoints::new("KinesisConnector::allow_endpoint");
        Self { config, endpoints, clients: Mutex::default() }
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

    async fn client(&self, region: Option<&str>, endpoint: Option<&str>) -> Result<Client> {
        let place = (region.map(str::to_owned), endpoint.map(str::to_owned));
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
impl SourceConnector for KinesisConnector {
    fn kind(&self) -> &'static str {
        BACKEND
    }

    fn leaves(&self, _: &SourceSettings) -> bool {
        false
    }

    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        settings.only(&["stream", "from", "region", "endpoint"])?;
        let stream = settings.text("stream")?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if stream.len() > LONGEST_NAME || !stream.bytes().all(allowed) {
            let reason = "must be a stream's name: 1 to 128 of A-Z a-z 0-9 _ . -";
            return Err(settings.refuse("stream", reason));
        }
        settings.optional("region")?;
        position::first(settings, SystemClock::new().now())?;
        self.endpoints.check(settings)
    }

    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        let settings = &opening.settings;
        let refused = |invalid| Error::invalid("open", invalid);
        self.check(settings).map_err(refused)?;
        let stream = settings.text("stream").map_err(refused)?;
        let first = position::first(settings, SystemClock::new().now()).map_err(refused)?;
        let region = settings.optional("region").map_err(refused)?;
        let endpoint = settings.optional("endpoint").map_err(refused)?;
        if let Some(name) = endpoint.and_then(|url| self.endpoints.judged_name(url)) {
            // Judged again when it is dialled; here it is said what is wrong.
            guarded::addresses(&self.endpoints, &name).await?;
        }
        let client = self.client(region, endpoint).await?;
        let (places, pause) = (&opening.checkpoints, self.config.poll_every);
        Ok(Arc::new(KinesisSource::open(client, stream, places, &first, pause).await?))
    }
}

#[cfg(test)]
mod tests {
    use flare_core::ErrorKind;
    use flare_core::model::ConsumerId;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_name_whose_addresses_do_not_pass_is_not_asked() {
        let none = |address: IpAddr| Err(format!("{address} is not to be asked"));
        let config = KinesisConfig::new().region("eu-central-1").credentials("a", "b").attempts(1);
        let kinesis = KinesisConnector::new(config).guard(none);
        let settings = json!({"stream": "orders", "endpoint": "http://localhost:1"});
        let settings = SourceSettings::new("kinesis", settings).unwrap();
        kinesis.check(&settings).unwrap();
        let opening = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
        let refused = kinesis.open(opening).await.unwrap_err();
        assert_eq!((refused.kind(), refused.field()), (ErrorKind::Invalid, Some("endpoint")));
        assert!(refused.to_string().contains("is not to be asked"), "{refused}");
        // The SDK's client looks it up again, and is given nothing then.
        let client = kinesis.client(None, Some("http://localhost:1")).await.unwrap();
        let failed = client.list_shards().stream_name("orders").send().await.unwrap_err();
        let mut source: Option<&dyn std::error::Error> = Some(&failed);
        let mut said = String::new();
        while let Some(error) = source {
            said += &format!("{error}: ");
            source = error.source();
        }
        assert!(said.contains("is not to be asked"), "{said}");
    }

    #[test]
    fn settings_name_a_stream_and_only_an_endpoint_that_is_allowed() {
        let kinesis = KinesisConnector::new(KinesisConfig::new()).allow_endpoint("http://allowed");
        for (settings, refused) in [
            (json!({"stream": "orders.v2"}), None),
            (json!({"stream": "a", "from": "oldest", "region": "eu-west-1"}), None),
            (json!({"stream": "a", "endpoint": "http://allowed"}), None),
            (json!({}), Some("kinesis.stream: is required")),
            (
                json!({"stream": "x".repeat(129)}),
                Some("kinesis.stream: must be a stream's name: 1 to 128 of A-Z a-z 0-9 _ . -"),
            ),
            (
                json!({"stream": "a", "from": "yesterday"}),
                Some("kinesis.from: must be latest, oldest or a time such as 2026-01-31T12:00:00Z"),
            ),
            (
                json!({"stream": "a", "endpoint": "http://169.254.169.254"}),
                Some(
                    "kinesis.endpoint: is none that the host allows \
                     (KinesisConnector::allow_endpoint)",
                ),
            ),
            (json!({"stream": "a", "queue": "b"}), Some("kinesis.queue: there is no such setting")),
        ] {
            let settings = SourceSettings::new("kinesis", settings).unwrap();
            let said = kinesis.check(&settings).err().map(|invalid| invalid.to_string());
            assert_eq!(said.as_deref(), refused, "{settings:?}");
        }
        let named = kinesis.allowed_in("aws.endpoints");
        let elsewhere = json!({"stream": "a", "endpoint": "http://elsewhere"});
        let refused = named.check(&SourceSettings::new("kinesis", elsewhere).unwrap()).unwrap_err();
        assert!(refused.to_string().contains("allows (aws.endpoints)"), "{refused}");
    }
}
