//! `[otlp]`: which collector is told, of what and how often.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::check::{number, time};

/// `[otlp]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Otlp {
    /// Where the collector is; empty if there is none.
    pub endpoint: String,
    /// What it is sent.
    pub signals: Vec<Signal>,
    /// Under which name.
    pub service: String,
    /// How often it is sent figures.
    #[serde(with = "flare_core::model::duration")]
    pub interval: Duration,
    /// Of a hundred traces that begin here, how many it is sent.
    pub sample: u32,
    /// Headers that it wants, as `name: value`.
    pub headers: Vec<Header>,
}

/// What a collector can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// What each request and notification went through.
    Traces,
    /// What `GET /metrics` tells.
    Metrics,
}

/// A header that may have a secret in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Header(#[serde(with = "flare_core::model::secret")] SecretString);

impl Header {
    /// Its name and value, if it has both.
    pub fn parts(&self) -> Option<(&str, &str)> {
        let (name, value) = self.0.expose_secret().split_once(':')?;
        Some((name.trim(), value.trim()))
    }
}

impl Default for Otlp {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            signals: vec![Signal::Traces, Signal::Metrics],
            service: "flare".to_owned(),
            interval: Duration::from_secs(30),
            sample: 100,
            headers: Vec::new(),
        }
    }
}

impl Otlp {
    /// Whether the collector is sent this.
    pub fn sends(&self, signal: Signal) -> bool {
        !self.endpoint.is_empty() && self.signals.contains(&signal)
    }
}

pub(super) fn check(otlp: &Otlp) -> Result<(), ConfigError> {
    let refuse = |key: &str, reason: &str| Err(ConfigError::new(format!("otlp.{key}"), reason));
    if otlp.endpoint.is_empty() {
        return Ok(());
    }
    if !cfg!(feature = "otlp") {
        let reason = "must be empty, as this program was built without it: cargo install --path flare-server \
                      --features otlp";
        return refuse("endpoint", reason);
    }
    let parsed = reqwest::Url::parse(&otlp.endpoint);
    if !parsed.as_ref().is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    {
        return refuse("endpoint", "must be a URL that begins with \"http://\" or \"https://\"");
    }
    if !parsed.is_ok_and(|url| url.username().is_empty() && url.password().is_none()) {
        return refuse(
            "endpoint",
            "must not have a user or password in it: put what the collector asks for in otlp.headers",
        );
    }
    if otlp.service.trim().is_empty() {
        return refuse("service", "must name what traces and metrics are of, like \"flare\"");
    }
    let second = Duration::from_secs(1);
    time("otlp.interval", otlp.interval, second, Duration::from_hours(1))?;
    number("otlp.sample", otlp.sample, 0, 100)?;
    if otlp.signals.is_empty() {
        return refuse("signals", "must name \"traces\", \"metrics\" or both");
    }
    for (index, header) in otlp.headers.iter().enumerate() {
        let fits = |(name, value): (&str, &str)| {
            let name = reqwest::header::HeaderName::try_from(name);
            name.is_ok() && reqwest::header::HeaderValue::try_from(value).is_ok()
        };
        if !header.parts().is_some_and(fits) {
            return refuse(&format!("headers[{index}]"), "must be a header: \"name: value\"");
        }
    }
    Ok(())
}
