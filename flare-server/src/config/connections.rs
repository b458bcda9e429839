//! `[connections.NAME]`: brokers that ask who we are, by names of the operator's own. A consumer says the name, so
//! that no credential is in what it is created with, stored as or shown as.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_backend_rabbitmq::{RabbitMqConfig, RabbitMqConnector};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::check::time;

/// The section that all connections are in.
pub(super) const SECTION: &str = "connections";

/// The longest name of a connection.
const LONGEST_NAME: usize = 64;

/// How a connection may be called: so that each of its keys has a variable, and each variable one key.
pub(super) const NAMES: &str =
    "must be called by 1 to 64 of a-z 0-9, with single - in between: [connections.main]";

const PLAIN: &str = "amqp://";
const ENCRYPTED: &str = "amqps://";

/// Options of an AMQP URI that say what a key says, and the key.
const OVERRULED: [(&str, &str); 2] =
    [("heartbeat", "heartbeat"), ("connection_timeout", "timeout")];

/// `[connections.NAME]`: a RabbitMQ broker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BrokerConnection {
    /// Where it is, who signs in, and the virtual host.
    #[serde(with = "flare_core::model::secret::uri")]
    pub uri: SecretString,
    /// With which password; empty for that of the URI.
    #[serde(with = "flare_core::model::secret")]
    pub password: SecretString,
    /// A PEM file of those who sign the broker's certificate; empty for whom the machine trusts.
    pub ca_file: String,
    /// How long it may take to connect, and to settle.
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
    /// After how long without a word from the broker the connection counts as lost.
    #[serde(with = "flare_core::model::duration")]
    pub heartbeat: Duration,
}

impl Default for BrokerConnection {
    fn default() -> Self {
        Self {
            uri: SecretString::default(),
            password: SecretString::default(),
            ca_file: String::new(),
            timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(20),
        }
    }
}

impl BrokerConnection {
    /// The same for RabbitMQ's connector, all but the certificates of [`ca_file`](Self::ca_file).
    pub fn rabbitmq(&self) -> RabbitMqConfig {
        self.rabbitmq_at(self.uri.expose_secret())
    }

    fn rabbitmq_at(&self, uri: &str) -> RabbitMqConfig {
        let config = RabbitMqConfig::new(uri).timeout(self.timeout).heartbeat(self.heartbeat);
        match self.password.expose_secret() {
            "" => config,
            password => config.password(password),
        }
    }
}

/// Whether a connection may be called so.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| !part.is_empty() && part.bytes().all(allowed);
    name.len() <= LONGEST_NAME && name.split('-').all(part)
}

pub(super) fn check(connections: &BTreeMap<String, BrokerConnection>) -> Result<(), ConfigError> {
    connections.iter().try_for_each(|(name, connection)| check_one(name, connection))
}

fn check_one(name: &str, connection: &BrokerConnection) -> Result<(), ConfigError> {
    let key = |key: &str| format!("{SECTION}.{name}.{key}");
    let refuse = |name: &str, reason: &str| Err(ConfigError::new(key(name), reason));
    let uri = connection.uri.expose_secret();
    let plain = match uri.strip_prefix(ENCRYPTED) {
        Some(rest) => format!("{PLAIN}{rest}"),
        None if uri.starts_with(PLAIN) => uri.to_owned(),
        None => return refuse("uri", "must begin with \"amqp://\" or \"amqps://\""),
    };
    let options = uri.split_once('?').map_or("", |(_, options)| options);
    let said = |option: &str| options.split('&').any(|it| it.split('=').next() == Some(option));
    if let Some((option, overruling)) = OVERRULED.iter().find(|(option, _)| said(option)) {
        let reason = format!("must not have the option {option}: {} says it", key(overruling));
        return refuse("uri", &reason);
    }
    let [moment, second] = [1, 1_000].map(Duration::from_millis);
    let hour = Duration::from_hours(1);
    time(&key("timeout"), connection.timeout, moment, hour)?;
    time(&key("heartbeat"), connection.heartbeat, second, hour)?;
    if !connection.ca_file.is_empty() && plain == uri {
        return refuse("ca-file", "has no effect: the uri is amqp://, which is not encrypted");
    }
    // As if it were not encrypted: whom to trust is in files, which are read when the server starts.
    match RabbitMqConnector::new().connection(name, connection.rabbitmq_at(&plain)) {
        Ok(_) => Ok(()),
        Err(error) => refuse(&error.field().unwrap_or("uri").replace('_', "-"), error.detail()),
    }
}
