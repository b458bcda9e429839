//! `[consumers]`: what consumers may pull from without naming a connection.

use std::time::Duration;

use flare_backend_kinesis::KinesisConfig;
use flare_backend_sqs::SqsConfig;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::check::time;

/// `[consumers]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Consumers {
    /// Queues of SQS, and streams of Kinesis.
    pub aws: Aws,
}

/// `[consumers.aws]`: credentials are found as every AWS SDK finds them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aws {
    /// The region of queues and streams whose consumer names none; empty for the machine's.
    pub region: String,
    /// The servers that a consumer may name instead of its region's, wherever they are; all others are guarded.
    pub endpoints: Vec<String>,
    /// How long a call may take, all its attempts included.
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
}

impl Default for Aws {
    fn default() -> Self {
        Self { region: String::new(), endpoints: Vec::new(), timeout: Duration::from_secs(10) }
    }
}

impl Aws {
    /// The same for the connector of SQS.
    pub fn sqs(&self) -> SqsConfig {
        SqsConfig::new().region(&self.region).timeout(self.timeout)
    }

    /// The same for the connector of Kinesis.
    pub fn kinesis(&self) -> KinesisConfig {
        let config = KinesisConfig::new().timeout(self.timeout);
        if self.region.is_empty() { config } else { config.region(&self.region) }
    }
}

pub(super) fn check(consumers: &Consumers) -> Result<(), ConfigError> {
    const TABLE: &str = "consumers.aws";
    let aws = &consumers.aws;
    let (second, hour) = (Duration::from_secs(1), Duration::from_hours(1));
    time(&format!("{TABLE}.timeout"), aws.timeout, second, hour)?;
    aws.sqs().check().map_err(|invalid| ConfigError::in_table(TABLE, &invalid))?;
    for (index, url) in aws.endpoints.iter().enumerate() {
        let refuse = |reason: &str| ConfigError::new(format!("{TABLE}.endpoints[{index}]"), reason);
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(refuse("must begin with \"http://\" or \"https://\""));
        }
        if aws.endpoints[..index].contains(url) {
            return Err(refuse("is in the list before"));
        }
    }
    Ok(())
}
