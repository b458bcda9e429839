//! Takes `[queue.sqs]`; gives where SQS is, who we are there and how lanes share its queues. Never
//! shows a secret.

use std::time::Duration;

use flare_core::model::Placement;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::check::{number, size, time};
use super::secret::{masked, secret};

/// The longest prefix that leaves room for the rest of a queue's name.
const LONGEST_PREFIX: usize = 32;

/// `[queue.sqs]`. Texts that are empty leave the word to the machine's own AWS settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Sqs {
    /// The server, if not that of the region.
    pub endpoint: String,
    /// The region.
    pub region: String,
    /// The id of the key that signs requests.
    pub key: String,
    /// The key.
    #[serde(serialize_with = "masked", deserialize_with = "secret")]
    pub secret: SecretString,
    /// The ARN of a role to act as.
    pub assume_role: String,
    /// What the names of queues begin with.
    pub prefix: String,
    /// Whether lanes share the queues of slots or have their own.
    pub placement: Placement,
    /// Slots, each of which is a queue.
    pub slots: u32,
    /// Whether queues of slots and lanes are FIFO queues.
    pub fifo: bool,
    /// The largest message.
    #[serde(with = "flare_core::model::size")]
    pub message_limit: u64,
    /// How long a call may take.
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
}

impl Default for Sqs {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            region: String::new(),
            key: String::new(),
            secret: SecretString::default(),
            assume_role: String::new(),
            prefix: "flare".to_owned(),
            placement: Placement::default(),
            slots: 64,
            fifo: false,
            message_limit: 256 << 10,
            timeout: Duration::from_secs(10),
        }
    }
}

impl Sqs {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, reason: &str| {
            Err(ConfigError::new(format!("queue.sqs.{key}"), reason.to_owned()))
        };
        let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
        if !(self.endpoint.is_empty() || is_url(&self.endpoint)) {
            return refuse("endpoint", "must begin with \"http://\" or \"https://\"");
        }
        let word = |text: &str| text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        if !word(&self.region) {
            return refuse("region", "must be a region like \"eu-central-1\"");
        }
        if !self.key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse("key", "must be visible ASCII characters, without spaces");
        }
        let has_secret = !self.secret.expose_secret().is_empty();
        match (self.key.is_empty(), has_secret) {
            (false, false) => return refuse("key", "needs queue.sqs.secret"),
            (true, true) => return refuse("secret", "needs queue.sqs.key"),
            _ => {}
        }
        if !(self.assume_role.is_empty() || self.assume_role.starts_with("arn:")) {
            return refuse(
                "assume-role",
                "must be an ARN like \"arn:aws:iam::123456789012:role/r\"",
            );
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !(1..=LONGEST_PREFIX).contains(&self.prefix.len()) || !self.prefix.chars().all(allowed) {
            return refuse("prefix", "must be 1 to 32 of A-Z a-z 0-9 _ -");
        }
        number("queue.sqs.slots", self.slots, 1, 256)?;
        size("queue.sqs.message-limit", self.message_limit, 1 << 10, 1 << 20)?;
        let second = Duration::from_secs(1);
        time("queue.sqs.timeout", self.timeout, second, Duration::from_hours(1))
    }
}
