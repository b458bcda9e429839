//! How notifications are sent and what they hold, as stores keep it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::subscription::batch::BatchOptions;
use crate::model::subscription::builder::SubscriptionBuilder;
use crate::model::subscription::content::ContentOptions;
use crate::model::subscription::delivery::DeliveryOptions;
use crate::model::subscription::rate::Rate;
use crate::model::subscription::retry::{BackoffFunction, RetryPolicy};
use crate::model::{Invalid, duration, size};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StoredDelivery {
    success: Vec<u16>,
    discard: Vec<u16>,
    retry: StoredRetry,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<StoredSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<StoredRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<StoredSpan>,
    lanes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_interval: Option<StoredSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<StoredBatch>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredRetry {
    num_retries: u32,
    num_no_delay_retries: u32,
    min_delay_target: u64,
    num_min_delay_retries: u32,
    max_delay_target: u64,
    num_max_delay_retries: u32,
    backoff_function: BackoffFunction,
}

#[derive(Serialize, Deserialize)]
struct StoredRate {
    limit: u32,
    period: StoredSpan,
}

#[derive(Serialize, Deserialize)]
struct StoredBatch {
    max: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<StoredSpan>,
    #[serde(with = "size")]
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredSpan(#[serde(with = "duration")] Duration);

#[derive(Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredContent {
    pub(super) document: bool,
    pub(super) envelope: bool,
}

impl Default for StoredDelivery {
    fn default() -> Self {
        Self::from(&DeliveryOptions::default())
    }
}

impl Default for StoredContent {
    fn default() -> Self {
        Self::from(ContentOptions::default())
    }
}

impl Default for StoredRetry {
    /// An object that lacks something is completed as SNS does.
    fn default() -> Self {
        Self::from(&RetryPolicy::sns())
    }
}

impl From<ContentOptions> for StoredContent {
    fn from(ContentOptions { document, envelope }: ContentOptions) -> Self {
        Self { document, envelope }
    }
}

impl From<&DeliveryOptions> for StoredDelivery {
    fn from(delivery: &DeliveryOptions) -> Self {
        Self {
            success: delivery.success.iter().collect(),
            discard: delivery.discard.iter().collect(),
            retry: (&delivery.retry).into(),
            ttl: delivery.ttl.map(StoredSpan),
            rate: delivery.rate.map(StoredRate::from),
            concurrency: delivery.concurrency,
            timeout: delivery.timeout.map(StoredSpan),
            lanes: delivery.lanes,
            min_interval: delivery.min_interval.map(StoredSpan),
            batch: delivery.batch.map(StoredBatch::from),
        }
    }
}

impl From<Rate> for StoredRate {
    fn from(rate: Rate) -> Self {
        Self { limit: rate.limit(), period: StoredSpan(rate.period()) }
    }
}

impl From<BatchOptions> for StoredBatch {
    fn from(batch: BatchOptions) -> Self {
        Self { max: batch.max(), wait: batch.waits().map(StoredSpan), bytes: batch.bytes() }
    }
}

impl From<StoredBatch> for BatchOptions {
    fn from(stored: StoredBatch) -> Self {
        let batch = Self::of(stored.max).limit_bytes(stored.bytes);
        match stored.wait {
            Some(StoredSpan(wait)) => batch.wait(wait),
            None => batch,
        }
    }
}

impl From<&RetryPolicy> for StoredRetry {
    fn from(policy: &RetryPolicy) -> Self {
        Self {
            num_retries: policy.num_retries(),
            num_no_delay_retries: policy.num_no_delay_retries(),
            min_delay_target: policy.min_delay_target().as_secs(),
            num_min_delay_retries: policy.num_min_delay_retries(),
            max_delay_target: policy.max_delay_target().as_secs(),
            num_max_delay_retries: policy.num_max_delay_retries(),
            backoff_function: policy.backoff_function(),
        }
    }
}

impl StoredDelivery {
    /// A subscription that is told under this policy.
    pub(super) fn give(self, mut to: SubscriptionBuilder) -> Result<SubscriptionBuilder, Invalid> {
        to = to.success(self.success).discard(self.discard).lanes(self.lanes);
        to = to.retry(self.retry.policy().map_err(|invalid| invalid.within("delivery.retry"))?);
        if let Some(StoredRate { limit, period: StoredSpan(period) }) = self.rate {
            to = to.rate(limit, period);
        }
        to.delivery.ttl = self.ttl.map(|StoredSpan(ttl)| ttl);
        to.delivery.concurrency = self.concurrency;
        to.delivery.timeout = self.timeout.map(|StoredSpan(timeout)| timeout);
        to.delivery.batch = self.batch.map(BatchOptions::from);
        to.delivery.min_interval = self.min_interval.map(|StoredSpan(interval)| interval);
        Ok(to)
    }
}

impl StoredRetry {
    fn policy(self) -> Result<RetryPolicy, Invalid> {
        RetryPolicy::builder()
            .num_retries(self.num_retries)
            .num_no_delay_retries(self.num_no_delay_retries)
            .min_delay_target(Duration::from_secs(self.min_delay_target))
            .num_min_delay_retries(self.num_min_delay_retries)
            .max_delay_target(Duration::from_secs(self.max_delay_target))
            .num_max_delay_retries(self.num_max_delay_retries)
            .backoff_function(self.backoff_function)
            .build()
    }
}
