//! Takes where SQS is and who we are there; gives what the SDK needs, or the setting that is wrong.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_sqs::config::Builder;
use aws_smithy_http_client::Builder as HttpBuilder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use flare_core::model::Invalid;
use flare_core::{Error, Result};
use secrecy::{ExposeSecret, SecretString};

use crate::BACKEND;
use crate::credentials::{RoleSession, credentials};
use crate::names::LONGEST_PREFIX;

/// The longest a call, or a pause before the next one, may take: sums with it stay within bounds.
const LONGEST_TIME: Duration = Duration::from_hours(24);

/// What queues are called by, unless [`SqsConfig::prefix`] says otherwise.
const PREFIX: &str = "flare";

/// Each slot is a queue that is waited for all the time, unless [`SqsConfig::slots`] says otherwise.
const SLOTS: u32 = 64;

/// With FIFO queues a message may be received twice before it is due: by its own delay, and behind that of
/// another.
const FEWEST_FIFO_RECEIVES: u32 = 3;

/// How to reach SQS, and which queues there are ours.
///
/// Region, credentials and endpoint that are not set here are found as every AWS SDK finds them:
/// environment, profile (assumed roles included), web identity, container, instance.
///
/// ```
/// use std::time::Duration;
/// use flare_backend_sqs::SqsConfig;
///
/// let config = SqsConfig::new().prefix("orders").region("eu-central-1");
/// let local = SqsConfig::new()
///     .endpoint("http://127.0.0.1:4566")
///     .region("us-east-1")
///     .credentials("test", "test")
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
pub struct SqsConfig {
    /// The server; empty for that of the region.
    pub endpoint: String,
    /// The region; empty for the machine's.
    pub region: String,
    /// The id of the key that signs requests; empty for what the machine provides.
    pub key: String,
    /// The key.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::secret"))]
    pub secret: SecretString,
    /// The ARN of a role to act as, if any.
    pub assume_role: String,
    /// What the names of queues begin with.
    pub prefix: String,
    /// Slots that suit, each of which is a queue that is waited for all the time.
    pub slots: u32,
    /// Whether queues of slots and lanes are FIFO queues.
    pub fifo: bool,
    /// The largest message, as SQS counts.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::size"))]
    pub message_limit: usize,
    /// How long a call may take, all its attempts included.
    #[cfg_attr(feature = "serde", serde(with = "flare_core::model::duration"))]
    pub timeout: Duration,
    #[cfg_attr(feature = "serde", serde(skip))]
    session_token: Option<SecretString>,
    #[cfg_attr(feature = "serde", serde(skip))]
    role: RoleSession,
    #[cfg_attr(feature = "serde", serde(skip))]
    attempts: u32,
    #[cfg_attr(feature = "serde", serde(skip))]
    backoff: Duration,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) max_receives: u32,
}

impl Default for SqsConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl SqsConfig {
    /// SQS as the machine's own AWS settings say.
    pub fn new() -> Self {
        Self {
            endpoint: String::new(),
            region: String::new(),
            key: String::new(),
            secret: SecretString::default(),
            assume_role: String::new(),
            prefix: PREFIX.to_owned(),
            slots: SLOTS,
            fifo: false,
            message_limit: 256 << 10,
            timeout: Duration::from_secs(10),
            session_token: None,
            role: RoleSession::default(),
            attempts: 3,
            backoff: Duration::from_secs(1),
            max_receives: 1_000,
        }
    }

    /// Calls queues `<prefix>-<name>` (`flare`); 1 to 32 of `A–Z a–z 0–9 _ -`. Two Flares in one
    /// account and region need two prefixes.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Makes the queues of slots and lanes FIFO queues (standard): messages of one group are received in
    /// order. The queues of the stages are standard always. A queue of the other kind is another
    /// queue, of another name.
    pub fn fifo(mut self, fifo: bool) -> Self {
        self.fifo = fifo;
        self
    }

    /// So many slots (64), each of which is a queue that is waited for all the time, unless
    /// [`Settings::slots`](flare_core::Settings::slots) says another number.
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Uses this region instead of the machine's.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// Uses the server at this URL instead of the region's.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = url.into();
        self
    }

    /// Signs requests with this key instead of what the machine provides.
    pub fn credentials(mut self, key_id: impl Into<String>, secret: impl Into<String>) -> Self {
        self.key = key_id.into();
        self.secret = secret.into().into();
        self
    }

    /// The session that the key belongs to, for keys that end.
    pub fn session_token(mut self, token: impl Into<String>) -> Self {
        self.session_token = Some(token.into().into());
        self
    }

    /// Takes on this role, as whoever the key or the machine says that we are, and again whenever its
    /// session ends.
    pub fn assume_role(mut self, arn: impl Into<String>) -> Self {
        self.assume_role = arn.into();
        self
    }

    /// What the owner of the role wants to hear from whoever takes it on.
    pub fn external_id(mut self, id: impl Into<String>) -> Self {
        self.role.external_id = Some(id.into());
        self
    }

    /// What the sessions of the role are called (`flare`); shown in the logs of its owner.
    pub fn session_name(mut self, name: impl Into<String>) -> Self {
        self.role.session_name = Some(name.into());
        self
    }

    /// Asks the STS at this URL for the role instead of the region's.
    pub fn sts_endpoint(mut self, url: impl Into<String>) -> Self {
        self.role.sts_endpoint = Some(url.into());
        self
    }

    /// How long a call may take, all its attempts included (10 s). A receive has this time on top
    /// of the time it waits.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often a request is made that is throttled or not answered, with back-off and jitter in
    /// between (3).
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The longest wait before the second attempt (1 s), doubled for each further one; how much of it
    /// is waited is left to chance.
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    /// The largest message, and the largest batch, in bytes as SQS counts them (256 KiB; SQS takes
    /// 1 KiB to 1 MiB). New queues are created with it. Payloads are sent in base64, so three
    /// quarters of it are theirs.
    pub fn message_limit(mut self, bytes: usize) -> Self {
        self.message_limit = bytes;
        self
    }

    /// How often a message is received before it ends as a dead letter (1,000, the most
    /// SQS takes: a task is tried again while a store is away, which is no fault of its message). With
    /// FIFO queues at least 3: there, a delay uses up receipts.
    /// New queues are created with it; [`SqsQueue::align`](crate::SqsQueue::align) brings older ones in
    /// line.
    pub fn max_receives(mut self, receives: u32) -> Self {
        self.max_receives = receives;
        self
    }

    /// The same where a consumer says that its queue is elsewhere.
    pub(crate) fn elsewhere(&self, region: Option<&str>, endpoint: Option<&str>) -> Self {
        let mut config = self.clone();
        if let Some(region) = region {
            config.region = region.to_owned();
        }
        if let Some(endpoint) = endpoint {
            config.endpoint = endpoint.to_owned();
        }
        config
    }

    /// The SDK's settings.
    pub(crate) async fn load(&self) -> Result<Builder> {
        self.check().map_err(refused)?;
        let http =
            HttpBuilder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let retry = RetryConfig::standard()
            .with_max_attempts(self.attempts)
            .with_initial_backoff(self.backoff);
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .retry_config(retry)
            .timeout_config(TimeoutConfig::builder().operation_timeout(self.timeout).build());
        if !self.region.is_empty() {
            loader = loader.region(Region::new(self.region.clone()));
        }
        if !self.key.is_empty() {
            let token = self.session_token.as_ref();
            loader = loader.credentials_provider(credentials(&self.key, &self.secret, token));
        }
        let loaded = loader.load().await;
        if loaded.region().is_none() {
            let reason = "is set neither here nor in the AWS settings";
            return Err(refused(Invalid::new("region", reason)));
        }
        let loaded = match self.assume_role.as_str() {
            "" => loaded,
            arn => self.role.of(arn, loaded).await,
        };
        let mut builder = Builder::from(&loaded);
        if !self.endpoint.is_empty() {
            builder = builder.endpoint_url(&self.endpoint);
        }
        Ok(builder)
    }

    /// Refuses settings that could not work, by their names.
    pub fn check(&self) -> Result<(), Invalid> {
        let refused = |field, reason| Err(Invalid::new(field, reason));
        let is_url = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        let sts_endpoint = self.role.sts_endpoint.as_deref().unwrap_or_default();
        for (field, url) in [("endpoint", &*self.endpoint), ("sts_endpoint", sts_endpoint)] {
            if !(url.is_empty() || is_url(url)) {
                return refused(field, "must begin with \"http://\" or \"https://\"");
            }
        }
        let word = |text: &str| text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        if !word(&self.region) {
            return refused("region", "must be a region like \"eu-central-1\"");
        }
        if !self.key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refused("key", "must be visible ASCII characters, without spaces");
        }
        match (self.key.is_empty(), self.secret.expose_secret().is_empty()) {
            (false, true) => return refused("key", "needs `secret`"),
            (true, false) => return refused("secret", "needs `key`"),
            _ => {}
        }
        if self.session_token.is_some() && self.key.is_empty() {
            return refused("session_token", "is nothing without a key");
        }
        let of_role = [
            ("external_id", &self.role.external_id),
            ("session_name", &self.role.session_name),
            ("sts_endpoint", &self.role.sts_endpoint),
        ];
        for (field, value) in of_role {
            if value.is_some() && self.assume_role.is_empty() {
                return refused(field, "is nothing without a role to assume");
            }
        }
        if !(self.assume_role.is_empty() || self.assume_role.starts_with("arn:")) {
            let reason = "must be an ARN like \"arn:aws:iam::123456789012:role/r\"";
            return refused("assume_role", reason);
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !(1..=LONGEST_PREFIX).contains(&self.prefix.len()) || !self.prefix.chars().all(allowed) {
            return refused("prefix", "must be 1 to 32 of A-Z a-z 0-9 _ -");
        }
        if self.slots == 0 {
            return refused("slots", "must be at least 1");
        }
        if self.timeout.is_zero() {
            return refused("timeout", "must be longer than nothing");
        }
        for (field, time) in [("timeout", self.timeout), ("backoff", self.backoff)] {
            if time > LONGEST_TIME {
                return refused(field, "must be at most 24 h");
            }
        }
        if self.attempts == 0 {
            return refused("attempts", "must be at least 1");
        }
        if !(1 << 10..=1 << 20).contains(&self.message_limit) {
            return refused("message_limit", "must be from 1KiB to 1MiB");
        }
        if !(1..=1_000).contains(&self.max_receives) {
            return refused("max_receives", "must be 1 to 1000");
        }
        if self.fifo && self.max_receives < FEWEST_FIFO_RECEIVES {
            return refused("max_receives", "must be 3 to 1000 with FIFO queues");
        }
        Ok(())
    }
}

fn refused(invalid: Invalid) -> Error {
    Error::invalid("connect", invalid).with_backend(BACKEND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_named() {
        let refusals = [
            ("prefix", SqsConfig::new().prefix("")),
            ("prefix", SqsConfig::new().prefix("a.b")),
            ("prefix", SqsConfig::new().prefix("ü")),
            ("prefix", SqsConfig::new().prefix("x".repeat(33))),
            ("timeout", SqsConfig::new().timeout(Duration::ZERO)),
            ("timeout", SqsConfig::new().timeout(Duration::MAX)),
            ("backoff", SqsConfig::new().backoff(Duration::MAX)),
            ("attempts", SqsConfig::new().attempts(0)),
            ("message_limit", SqsConfig::new().message_limit(1023)),
            ("message_limit", SqsConfig::new().message_limit((1 << 20) + 1)),
            ("max_receives", SqsConfig::new().max_receives(0)),
            ("max_receives", SqsConfig::new().max_receives(1_001)),
            ("max_receives", SqsConfig::new().max_receives(2).fifo(true)),
            ("endpoint", SqsConfig::new().endpoint("127.0.0.1:4566")),
            ("sts_endpoint", SqsConfig::new().assume_role("arn:x").sts_endpoint("sts")),
            ("sts_endpoint", SqsConfig::new().sts_endpoint("http://sts")),
            ("external_id", SqsConfig::new().external_id("x")),
            ("session_name", SqsConfig::new().session_name("x")),
            ("session_token", SqsConfig::new().session_token("x")),
            ("assume_role", SqsConfig::new().assume_role("flare")),
            ("slots", SqsConfig::new().slots(0)),
        ];
        for (field, config) in refusals {
            assert_eq!(config.check().unwrap_err().field(), field);
        }
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        SqsConfig::new().check().unwrap();
        SqsConfig::new().prefix("x".repeat(32)).message_limit(1 << 10).check().unwrap();
        SqsConfig::new().prefix("A-z_0").message_limit(1 << 20).check().unwrap();
        SqsConfig::new().max_receives(1).check().unwrap();
        SqsConfig::new().max_receives(1_000).check().unwrap();
    }

    #[test]
    fn the_readme_says_how_often_a_message_is_received() {
        let readme = include_str!("../README.md");
        assert_eq!(SqsConfig::new().max_receives, 1_000);
        assert!(readme.contains("received 1,000 times (`max_receives`"), "the text");
        assert!(readme.contains("| receipts of a message | 1,000 (`max_receives`"), "the table");
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = SqsConfig::new().credentials("AKIA", "hush").session_token("hush");
        let shown = format!("{config:?}");
        assert!(!shown.contains("hush"), "{shown}");
    }
}
