//! Takes named connections of the host's configuration; opens queues on them for consumers, which name one and
//! never see its credentials.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use flare_core::model::{Invalid, SourceSettings};
use flare_core::port::{Source, SourceConnector, SourceOpening};
use flare_core::{Error, Result};

use crate::BACKEND;
use crate::config::RabbitMqConfig;
use crate::link::Dialer;
use crate::source::RabbitMqSource;

/// Messages that the broker gives ahead, unless a consumer says otherwise.
const PREFETCH: u16 = 200;

/// The most that a consumer may have given ahead.
const MAX_PREFETCH: u64 = 10_000;

/// The longest name of a queue that AMQP carries.
const LONGEST_NAME: usize = 255;

/// Opens queues of RabbitMQ for consumers: `{"rabbitmq": {"connection": "main", "queue": "orders"}}`.
///
/// ```
/// use flare_backend_rabbitmq::{RabbitMqConfig, RabbitMqConnector};
///
/// let config = RabbitMqConfig::new("amqps://flare:hunter2@mq.example.com/orders");
/// let connector = RabbitMqConnector::new().connection("main", config)?;
/// # Ok::<(), flare_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct RabbitMqConnector {
    connections: BTreeMap<String, RabbitMqConfig>,
    numbers: Arc<AtomicU64>,
}

impl RabbitMqConnector {
    /// One that knows no connection yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with a connection of this name; refused if its settings contradict themselves.
    pub fn connection(mut self, name: impl Into<String>, config: RabbitMqConfig) -> Result<Self> {
        config.check()?;
        self.connections.insert(name.into(), config);
        Ok(self)
    }

    fn settings<'a>(
        &'a self,
        settings: &'a SourceSettings,
    ) -> Result<(&'a RabbitMqConfig, &'a str, u16), Invalid> {
        settings.only(&["connection", "queue", "prefetch"])?;
        let name = settings.text("connection")?;
        let Some(config) = self.connections.get(name) else {
            let reason = format!("there is no connection {name:?} in the configuration");
            return Err(settings.refuse("connection", reason));
        };
        let queue = settings.text("queue")?;
        if queue.len() > LONGEST_NAME {
            return Err(settings.refuse("queue", "must be at most 255 bytes"));
        }
        let prefetch = settings.number("prefetch", &(1..=MAX_PREFETCH))?;
        let prefetch = prefetch.and_then(|count| u16::try_from(count).ok()).unwrap_or(PREFETCH);
        Ok((config, queue, prefetch))
    }
}

#[async_trait]
impl SourceConnector for RabbitMqConnector {
    fn kind(&self) -> &'static str {
        BACKEND
    }

    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        self.settings(settings).map(drop)
    }

    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        let settings = self.settings(&opening.settings);
        let (config, queue, prefetch) =
            settings.map_err(|invalid| Error::invalid("open", invalid))?;
        let uri = config.target()?;
        let dialer = Dialer {
            trust: config.trust(&uri)?,
            uri,
            queue: queue.to_owned(),
            prefetch,
            name: format!("flare-{}", opening.consumer),
            timeout: config.timeout,
        };
        Ok(Arc::new(RabbitMqSource::open(dialer, Arc::clone(&self.numbers)).await?))
    }
}

#[cfg(test)]
mod tests {
    use flare_core::ErrorKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_name_a_connection_and_a_queue() {
        let config = RabbitMqConfig::new("amqp://flare:hush@127.0.0.1");
        let connector = RabbitMqConnector::new().connection("main", config).unwrap();
        assert!(!format!("{connector:?}").contains("hush"));
        let queue = "q".repeat(255);
        for (settings, refused) in [
            (json!({"connection": "main", "queue": queue}), None),
            (json!({"connection": "main", "queue": "a", "prefetch": 10_000}), None),
            (json!({"queue": "a"}), Some("rabbitmq.connection: is required")),
            (json!({"connection": "main"}), Some("rabbitmq.queue: is required")),
            (
                json!({"connection": "other", "queue": "a"}),
                Some("rabbitmq.connection: there is no connection \"other\" in the configuration"),
            ),
            (
                json!({"connection": "main", "queue": format!("{queue}q")}),
                Some("rabbitmq.queue: must be at most 255 bytes"),
            ),
            (
                json!({"connection": "main", "queue": "a", "prefetch": 0}),
                Some("rabbitmq.prefetch: must be an integer from 1 to 10000"),
            ),
            (
                json!({"connection": "main", "queue": "a", "uri": "amqp://x"}),
                Some("rabbitmq.uri: there is no such setting"),
            ),
        ] {
            let settings = SourceSettings::new("rabbitmq", settings).unwrap();
            let said = connector.check(&settings).err().map(|invalid| invalid.to_string());
            assert_eq!(said.as_deref(), refused, "{settings:?}");
        }
    }

    #[test]
    fn a_connection_that_cannot_be_meant_is_refused_at_once() {
        let refused = RabbitMqConnector::new().connection("main", RabbitMqConfig::new("mq"));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
