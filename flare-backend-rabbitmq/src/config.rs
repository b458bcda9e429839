//! Takes where a broker is and who we are there; gives what the client needs, or the setting that is wrong.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use flare_core::{Error, ErrorKind, Result};
use lapin::uri::{AMQPScheme, AMQPUri};
use secrecy::{ExposeSecret, SecretString};

use crate::BACKEND;
use crate::transport::Trust;

/// The longest a call may take.
const LONGEST_TIME: Duration = Duration::from_hours(24);

/// How to reach a broker: one named connection of a [`RabbitMqConnector`](crate::RabbitMqConnector).
///
/// ```
/// use std::time::Duration;
/// use flare_backend_rabbitmq::RabbitMqConfig;
///
/// let config = RabbitMqConfig::new("amqps://flare@mq.example.com/orders")
///     .password("hunter2")
///     .timeout(Duration::from_secs(5));
/// assert!(!format!("{config:?}").contains("hunter2"));
/// ```
#[derive(Clone)]
#[must_use]
pub struct RabbitMqConfig {
    uri: SecretString,
    password: Option<SecretString>,
    root_certificates: Option<String>,
    pub(crate) timeout: Duration,
    heartbeat: Duration,
}

impl RabbitMqConfig {
    /// The broker at an `amqp://` or `amqps://` URI, which names the user, the password unless
    /// [`password`](Self::password) does, and the virtual host: `amqps://user:password@host:5671/vhost`. Without a
    /// path that is `/`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into().into(),
            password: None,
            root_certificates: None,
            timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(20),
        }
    }

    /// Signs in with this password, instead of the one in the URI.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into().into());
        self
    }

    /// Trusts these certificates (PEM), and no longer those that the machine trusts. For `amqps://`.
    pub fn root_certificates(mut self, pem: impl Into<String>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }

    /// How long it may take to connect, and to settle (10 s).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// After how long without a word from the broker the connection counts as lost (20 s), in whole seconds;
    /// the broker may want less.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// Whether it can be used at all.
    pub(crate) fn check(&self) -> Result<()> {
        self.target().and_then(|uri| self.trust(&uri)).map(drop)
    }

    /// Where to connect to, with everything that is said there.
    pub(crate) fn target(&self) -> Result<AMQPUri> {
        if self.timeout.is_zero() || self.timeout > LONGEST_TIME {
            return Err(refused("timeout", "must be longer than nothing, and at most 24 h"));
        }
        let heartbeat = match u16::try_from(self.heartbeat.as_secs()) {
            Ok(seconds @ 1..=3600) => seconds,
            _ => return Err(refused("heartbeat", "must be 1 s to 1 h")),
        };
        // What the parser says may quote a secret.
        let parsed = self.uri.expose_secret().parse::<AMQPUri>().map_err(|_| {
            let reason = "is no amqp:// or amqps:// address (why is not shown, as that may quote a secret; \
                          / : ? # [ ] @ % in user, password or virtual host have to be percent-encoded)";
            refused("uri", reason)
        });
        let mut uri = parsed?;
        if let Some(password) = &self.password {
            uri.authority.userinfo.password = password.expose_secret().to_owned();
        }
        uri.query.heartbeat.get_or_insert(heartbeat);
        Ok(uri)
    }

    /// Whom to trust, where the connection is encrypted.
    pub(crate) fn trust(&self, uri: &AMQPUri) -> Result<Option<Trust>> {
        match (&uri.scheme, &self.root_certificates) {
            (AMQPScheme::AMQP, None) => Ok(None),
            (AMQPScheme::AMQP, Some(_)) => {
                Err(refused("root_certificates", "are for amqps:// addresses"))
            }
            (AMQPScheme::AMQPS, None) => Trust::machine().map(Some),
            (AMQPScheme::AMQPS, Some(pem)) => match Trust::only(pem)? {
                Some(trust) => Ok(Some(trust)),
                None => Err(refused("root_certificates", "hold no certificate in PEM")),
            },
        }
    }
}

impl fmt::Debug for RabbitMqConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URI holds a password, or may.
        f.debug_struct("RabbitMqConfig")
            .field("timeout", &self.timeout)
            .field("heartbeat", &self.heartbeat)
            .finish_non_exhaustive()
    }
}

fn refused(field: &'static str, reason: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Invalid, "connect")
        .with_backend(BACKEND)
        .with_field(field)
        .with_detail(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_named_and_no_secret_is() {
        let plain = || RabbitMqConfig::new("amqp://flare:hush@127.0.0.1");
        let refusals = [
            ("uri", RabbitMqConfig::new("http://flare:hush@127.0.0.1")),
            ("uri", RabbitMqConfig::new("amqp://flare:hush@127.0.0.1:port")),
            ("uri", RabbitMqConfig::new("")),
            ("timeout", plain().timeout(Duration::ZERO)),
            ("timeout", plain().timeout(Duration::MAX)),
            ("heartbeat", plain().heartbeat(Duration::from_millis(999))),
            ("heartbeat", plain().heartbeat(Duration::from_secs(3601))),
            ("root_certificates", plain().root_certificates("-----BEGIN CERTIFICATE-----")),
            ("root_certificates", RabbitMqConfig::new("amqps://x").root_certificates("nothing")),
        ];
        for (field, config) in refusals {
            let error = config.check().unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)));
            assert!(!format!("{error:?}").contains("hush"), "{error:?}");
        }
        plain().check().unwrap();
    }

    #[test]
    fn the_password_and_the_heartbeat_are_what_was_said() {
        let config = RabbitMqConfig::new("amqp://flare:old@127.0.0.1/orders").password("n/w");
        let uri = config.heartbeat(Duration::from_secs(7)).target().unwrap();
        assert_eq!(uri.authority.userinfo.password, "n/w");
        assert_eq!((uri.vhost.as_str(), uri.query.heartbeat), ("orders", Some(7)));
        let said = RabbitMqConfig::new("amqp://127.0.0.1?heartbeat=3").target().unwrap();
        assert_eq!((said.vhost.as_str(), said.query.heartbeat), ("/", Some(3)));
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = RabbitMqConfig::new("amqp://flare:hush@mq").password("hush");
        assert!(!format!("{config:?}").contains("hush"));
    }
}
