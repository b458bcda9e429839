//! Takes where Kinesis is and who we are there; gives a client, or the setting that is wrong.

use std::borrow::Cow;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_kinesis::config::{Builder, Credentials};
use aws_smithy_http_client::Builder as HttpBuilder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use flare_core::{Error, ErrorKind, Result};
use secrecy::{ExposeSecret, SecretString};

use crate::BACKEND;

/// The longest a call, or a pause before the next one, may take.
const LONGEST_TIME: Duration = Duration::from_hours(24);

/// How to reach Kinesis.
///
/// Region, credentials and endpoint that are not set here are found as every AWS SDK finds them:
/// environment, profile (assumed roles included), web identity, container, instance.
///
/// ```
/// use std::time::Duration;
/// use flare_backend_kinesis::KinesisConfig;
///
/// let local = KinesisConfig::new()
///     .endpoint("http://127.0.0.1:4566")
///     .region("us-east-1")
///     .credentials("test", "test")
///     .timeout(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct KinesisConfig {
    region: Option<String>,
    endpoint: Option<String>,
    key: Option<(String, SecretString)>,
    session_token: Option<SecretString>,
    timeout: Duration,
    attempts: u32,
    backoff: Duration,
    pub(crate) poll_every: Duration,
}

impl Default for KinesisConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl KinesisConfig {
    /// Kinesis as the machine's own AWS settings say.
    pub fn new() -> Self {
        Self {
            region: None,
            endpoint: None,
            key: None,
            session_token: None,
            timeout: Duration::from_secs(10),
            attempts: 3,
            backoff: Duration::from_secs(1),
            poll_every: Duration::from_secs(1),
        }
    }

    /// Uses this region instead of the machine's.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// Uses the server at this URL instead of the region's.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Signs requests with this key instead of what the machine provides.
    pub fn credentials(mut self, key_id: impl Into<String>, secret: impl Into<String>) -> Self {
        self.key = Some((key_id.into(), secret.into().into()));
        self
    }

    /// The session that the key belongs to, for keys that end.
    pub fn session_token(mut self, token: impl Into<String>) -> Self {
        self.session_token = Some(token.into().into());
        self
    }

    /// How long a call may take, all its attempts included (10 s).
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

    /// The longest wait before the second attempt (1 s), doubled for each further one.
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    /// How long to wait before shards are looked at again that had nothing (1 s). Kinesis answers five questions
    /// a second for each shard, to all who ask together.
    pub fn poll_every(mut self, pause: Duration) -> Self {
        self.poll_every = pause;
        self
    }

    /// The same, in another region or at another endpoint.
    pub(crate) fn elsewhere(&self, region: Option<&str>, endpoint: Option<&str>) -> Self {
        let mut config = self.clone();
        config.region = region.map(str::to_owned).or(config.region);
        config.endpoint = endpoint.map(str::to_owned).or(config.endpoint);
        config
    }

    /// What a client with these settings is made of.
    pub(crate) async fn load(&self) -> Result<Builder> {
        self.check()?;
        let http =
            HttpBuilder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let retry = RetryConfig::standard()
            .with_max_attempts(self.attempts)
            .with_initial_backoff(self.backoff);
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .retry_config(retry)
            .timeout_config(TimeoutConfig::builder().operation_timeout(self.timeout).build());
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some((id, secret)) = &self.key {
            let token = self.session_token.as_ref().map(|it| it.expose_secret().to_owned());
            let secret = secret.expose_secret();
            loader =
                loader.credentials_provider(Credentials::new(id, secret, token, None, "settings"));
        }
        let loaded = loader.load().await;
        if loaded.region().is_none() {
            return Err(refused("region", "is set neither here nor in the AWS settings"));
        }
        let mut builder = Builder::from(&loaded);
        if let Some(url) = &self.endpoint {
            builder = builder.endpoint_url(url);
        }
        Ok(builder)
    }

    fn check(&self) -> Result<()> {
        let times =
            [("timeout", self.timeout), ("backoff", self.backoff), ("poll_every", self.poll_every)];
        for (field, time) in times {
            if time > LONGEST_TIME {
                return Err(refused(field, "must be at most 24 h"));
            }
        }
        for (field, time) in [("timeout", self.timeout), ("poll_every", self.poll_every)] {
            if time.is_zero() {
                return Err(refused(field, "must be longer than nothing"));
            }
        }
        if self.attempts == 0 {
            return Err(refused("attempts", "must be at least 1"));
        }
        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if self.endpoint.as_ref().is_some_and(|url| !is_url(url)) {
            return Err(refused("endpoint", "must be an http:// or https:// URL"));
        }
        if self.session_token.is_some() && self.key.is_none() {
            return Err(refused("session_token", "is nothing without a key"));
        }
        Ok(())
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
    fn a_wrong_setting_is_named() {
        let refusals = [
            ("timeout", KinesisConfig::new().timeout(Duration::ZERO)),
            ("timeout", KinesisConfig::new().timeout(Duration::MAX)),
            ("backoff", KinesisConfig::new().backoff(Duration::MAX)),
            ("poll_every", KinesisConfig::new().poll_every(Duration::ZERO)),
            ("attempts", KinesisConfig::new().attempts(0)),
            ("endpoint", KinesisConfig::new().endpoint("127.0.0.1:4566")),
            ("session_token", KinesisConfig::new().session_token("x")),
        ];
        for (field, config) in refusals {
            let error = config.check().unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)));
        }
        KinesisConfig::new().check().unwrap();
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = KinesisConfig::new().credentials("AKIA", "hush").session_token("hush");
        assert!(!format!("{config:?}").contains("hush"), "{config:?}");
    }
}
