//! Takes where the database is and how to use it; gives what the driver needs, or the setting that is wrong.

use std::time::Duration;

use flare_core::model::Invalid;
use flare_core::model::secret::mask_uri;
use flare_core::{Error, Result};
use secrecy::{ExposeSecret, SecretString};

use crate::BACKEND;

/// The longest a call or a pause may take.
const LONGEST_TIME: Duration = Duration::from_hours(24);
/// What a document may hold, unless it is said: PostgreSQL itself ends at a gigabyte.
const MAX_CONTENT: usize = 16 << 20;

/// How to reach PostgreSQL, and how to use it.
///
/// ```
/// use std::time::Duration;
/// use flare_backend_postgres::PostgresConfig;
///
/// let config = PostgresConfig::new("postgresql://flare@db.example.com/orders?sslmode=require")
///     .schema("flare")
///     .timeout(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields, default)
)]
#[must_use]
#[non_exhaustive]
pub struct PostgresConfig {
    /// The server and the database: `postgresql://…`.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::secret::uri"))]
    pub uri: SecretString,
    /// The password; empty for that of the URI.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::secret"))]
    pub password: SecretString,
    /// The schema that everything is in.
    pub schema: String,
    /// Most connections for repository and queue.
    pub pool_limit: usize,
    /// How long a call may take, waiting for a connection included.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::duration"))]
    pub timeout: Duration,
    /// How often queue and leases look for what other processes did and what is due.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::duration"))]
    pub poll_every: Duration,
    /// Whether messages that other processes send wake those who wait at once, instead of with the next poll.
    pub notify: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) look_every: Duration,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) create_missing: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) plain_statements: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) max_content: usize,
}

impl PostgresConfig {
    /// The server at a `postgresql://` URI. With several hosts the first that answers and takes writes is used;
    /// each has a second for that, or the URI's `connect_timeout`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: SecretString::from(uri.into()),
            password: SecretString::default(),
            schema: "flare".to_owned(),
            pool_limit: 10,
            timeout: Duration::from_secs(10),
            poll_every: Duration::from_millis(200),
            notify: false,
            look_every: Duration::from_millis(500),
            create_missing: false,
            plain_statements: false,
            max_content: MAX_CONTENT,
        }
    }

    /// Uses this schema instead of `flare`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Signs in with this password, instead of the one in the URI.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = SecretString::from(password.into());
        self
    }

    /// At most this many connections (10) for repository and queue, which share them in a
    /// [`PostgresBackend`](crate::PostgresBackend). Leases have at most 3 of their own.
    pub fn pool_limit(mut self, connections: usize) -> Self {
        self.pool_limit = connections;
        self
    }

    /// How long a call may take, waiting for a connection included (10 s).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often queue and leases look for what other processes did and what is due (200 ms).
    pub fn poll_every(mut self, pause: Duration) -> Self {
        self.poll_every = pause;
        self
    }

    /// How often documents are looked for that a host's own transactions have put, where the queue is not in this
    /// schema (500 ms). Where it is their commits have stored what wakes it.
    pub fn look_every(mut self, pause: Duration) -> Self {
        self.look_every = pause;
        self
    }

    /// Has the server say (`NOTIFY`) when messages are sent, by any process and by `flare.put`, and whoever waits for them
    /// here woken at once, on one connection more. Polls go on: they find what is not heard. While a process listens, each
    /// commit that sends messages takes a lock of the whole database, which is why it is not done unless it is asked
    /// for. Behind a pooler it has no effect, and says so.
    pub fn notify(mut self) -> Self {
        self.notify = true;
        self
    }

    /// Creates schema and tables at connect where there are none yet, as `flare setup` does. Without it a
    /// database that is not set up is refused.
    pub fn create_missing(mut self) -> Self {
        self.create_missing = true;
        self
    }

    /// Has the server read every statement anew, instead of remembering it. That is done anyway where a
    /// connection is not proven to stay with one process of the server, as behind a pooler that hands them out
    /// per transaction.
    pub fn plain_statements(mut self) -> Self {
        self.plain_statements = true;
        self
    }

    /// Bytes of content that a document may have (16 MiB).
    pub fn max_content(mut self, bytes: usize) -> Self {
        self.max_content = bytes;
        self
    }

    /// The driver's options.
    pub(crate) fn options(&self) -> Result<tokio_postgres::Config> {
        self.check().map_err(refused)?;
        let parsed = self.uri.expose_secret().parse::<tokio_postgres::Config>();
        let mut options = parsed.map_err(|error| self.not_an_address(&error))?;
        if !self.password.expose_secret().is_empty() {
            options.password(self.password.expose_secret());
        }
        if options.get_hosts().is_empty() && options.get_hostaddrs().is_empty() {
            return Err(refused(Invalid::new("uri", "names no server")));
        }
        if options.get_application_name().is_none() {
            options.application_name("flare");
        }
        if options.get_tcp_user_timeout().is_none() {
            options.tcp_user_timeout(self.timeout);
        }
        Ok(options)
    }

    /// The parser quotes what it does not understand, which may be a secret.
    fn not_an_address(&self, error: &tokio_postgres::Error) -> Error {
        let uri = self.uri.expose_secret();
        if uri.contains('@') || mask_uri(uri) != uri {
            let reason = "is no PostgreSQL address (why is not shown, as that may quote a secret; \
                          / : ? # [ ] @ % in user or password have to be percent-encoded)";
            return refused(Invalid::new("uri", reason));
        }
        let why = std::error::Error::source(error).map_or_else(String::new, ToString::to_string);
        refused(Invalid::new("uri", format!("is no PostgreSQL address: {why}")))
    }

    /// Refuses settings that could not work, by their names.
    pub fn check(&self) -> Result<(), Invalid> {
        let uri = self.uri.expose_secret();
        if !["postgresql://", "postgres://"].iter().any(|it| uri.starts_with(it)) {
            return Err(Invalid::new("uri", "must begin with \"postgresql://\""));
        }
        let times = [
            ("timeout", self.timeout),
            ("poll_every", self.poll_every),
            ("look_every", self.look_every),
        ];
        for (field, time) in times {
            if time.is_zero() {
                return Err(Invalid::new(field, "must be longer than nothing"));
            }
            if time > LONGEST_TIME {
                return Err(Invalid::new(field, "must be at most 24 h"));
            }
        }
        if self.pool_limit == 0 {
            return Err(Invalid::new("pool_limit", "must be at least 1"));
        }
        if !is_schema_name(&self.schema) {
            let reason = "must be 1 to 63 of a-z, 0-9 and _, and not begin with a digit or pg_";
            return Err(Invalid::new("schema", reason));
        }
        Ok(())
    }
}

impl Default for PostgresConfig {
    /// A server on this machine.
    fn default() -> Self {
        Self::new("postgresql://flare@127.0.0.1:5432/flare")
    }
}

/// Names that mean the same quoted and not, so that a host may write them either way.
fn is_schema_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=63).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.starts_with("pg_")
}

fn refused(invalid: Invalid) -> Error {
    Error::invalid("connect", invalid).with_backend(BACKEND)
}

#[cfg(test)]
mod tests {
    use flare_core::ErrorKind;

    use super::*;

    #[test]
    fn what_is_wrong_is_refused_by_its_name() {
        let config = || PostgresConfig::new("postgresql://db/flare");
        for (field, wrong) in [
            ("timeout", config().timeout(Duration::MAX)),
            ("timeout", config().timeout(Duration::ZERO)),
            ("poll_every", config().poll_every(Duration::MAX)),
            ("look_every", config().look_every(Duration::ZERO)),
            ("pool_limit", config().pool_limit(0)),
            ("schema", config().schema("Flare")),
            ("schema", config().schema("pg_flare")),
            ("schema", config().schema("a; DROP TABLE b")),
            ("schema", config().schema("")),
            ("uri", PostgresConfig::new("mongodb://db")),
            ("uri", PostgresConfig::new("postgresql:///flare")),
        ] {
            let error = wrong.options().unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)));
        }
        assert!(config().options().is_ok());
    }

    #[test]
    fn a_secret_is_never_shown() {
        let wrong = PostgresConfig::new("postgresql://ada:hunter2@db/flare?colour=red");
        assert!(!format!("{wrong:?}").contains("hunter2"));
        let error = wrong.options().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
