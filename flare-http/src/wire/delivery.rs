//! How a subscription's notifications are sent, and what they hold, as JSON has it.

use std::time::Duration;

use flare_core::model::Invalid;
use flare_core::model::subscription::{
    self, BatchOptions, ContentOptions, DeliveryOptions, MAX_BATCH, MAX_CONCURRENCY, MAX_LANES,
    RetryPolicy, StatusCodes, SubscriptionBuilder,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::extent::Extent;
use super::span::Span;
use super::whole::Whole;
use super::word::{BackoffWord, Word};

/// What counts as success, when to try again, and how much at once.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Delivery {
    /// Status codes by which the client takes a version; 200, 201, 202, 204 unless set.
    #[schema(value_type = Option<Vec<u16>>, min_items = 1)]
    success: Option<Vec<Whole<100, 599>>>,
    /// Status codes by which the client refuses a version for good.
    #[schema(value_type = Option<Vec<u16>>)]
    discard: Option<Vec<Whole<100, 599>>>,
    retry: Option<Retry>,
    /// How long a version is tried, such as `72h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    ttl: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    /// How many requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    concurrency: Option<Whole<1, MAX_CONCURRENCY>>,
    /// How long one request may take, such as `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    timeout: Option<Span>,
    /// Over how many lanes it is spread; at most the concurrency.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1024)]
    lanes: Option<Whole<1, MAX_LANES>>,
    /// The client is told of a document at most once in this time, such as `5s`; up to `24h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    min_interval: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<Batch>,
}

/// How often and how far apart a failed notification is tried again: SNS's `healthyRetryPolicy`.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Retry {
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 100)]
    num_retries: Option<Whole<0, 100>>,
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 100)]
    num_no_delay_retries: Option<Whole<0, 100>>,
    /// In seconds.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 3600)]
    min_delay_target: Option<Whole<1, 3600>>,
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 100)]
    num_min_delay_retries: Option<Whole<0, 100>>,
    /// In seconds.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 3600)]
    max_delay_target: Option<Whole<1, 3600>>,
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 100)]
    num_max_delay_retries: Option<Whole<0, 100>>,
    backoff_function: Option<BackoffWord>,
}

/// At most `limit` requests in every `period`.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    #[schema(value_type = u32, minimum = 1)]
    limit: Option<Whole<1, { u32::MAX }>>,
    /// Such as `1s`.
    #[schema(value_type = String)]
    period: Option<Span>,
}

/// Up to `max` notifications in one request, of different documents. Needs the envelope, and URL, method and
/// headers that are the same for all actions and without placeholders.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    #[schema(value_type = u32, minimum = 2, maximum = 1000)]
    max: Option<Whole<2, MAX_BATCH>>,
    /// How long one waits for others, such as `200ms`; up to `5s`. Not at all unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    wait: Option<Span>,
    /// The most bytes of the body, a number or a size such as `1MiB`, which it is unless set.
    #[schema(schema_with = Extent::described)]
    bytes: Option<Extent>,
}

/// What a notification's body is.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Content {
    /// Whether it has the document.
    document: Option<bool>,
    /// Whether it has the envelope; without, it is the document itself.
    envelope: Option<bool>,
}

impl Delivery {
    /// A subscription that is told under this policy.
    pub(super) fn give(self, mut to: SubscriptionBuilder) -> Result<SubscriptionBuilder, Invalid> {
        if let Some(success) = self.success {
            to = to.success(codes(success));
        }
        if let Some(discard) = self.discard {
            to = to.discard(codes(discard));
        }
        if let Some(retry) = self.retry {
            let retry = RetryPolicy::try_from(retry);
            to = to.retry(retry.map_err(|invalid| invalid.within("delivery.retry"))?);
        }
        if let Some(Span(ttl)) = self.ttl {
            to = to.ttl(ttl);
        }
        if let Some(Rate { limit, period }) = self.rate {
            let required = |field| Invalid::new(field, "is required");
            let Whole(limit) = limit.ok_or_else(|| required("delivery.rate.limit"))?;
            let Span(period) = period.ok_or_else(|| required("delivery.rate.period"))?;
            to = to.rate(limit, period);
        }
        if let Some(Whole(concurrency)) = self.concurrency {
            to = to.concurrency(concurrency);
        }
        if let Some(Span(timeout)) = self.timeout {
            to = to.timeout(timeout);
        }
        if let Some(Whole(lanes)) = self.lanes {
            to = to.lanes(lanes);
        }
        if let Some(Span(interval)) = self.min_interval {
            to = to.min_interval(interval);
        }
        if let Some(batch) = self.batch {
            to = to.batch(batch.try_into()?);
        }
        Ok(to)
    }
}

impl Content {
    /// A subscription whose notifications hold this.
    pub(super) fn give(self, to: SubscriptionBuilder) -> SubscriptionBuilder {
        to.document(self.document.unwrap_or(true)).envelope(self.envelope.unwrap_or(true))
    }
}

/// Status codes fit 16 bits.
fn codes(codes: Vec<Whole<100, 599>>) -> impl Iterator<Item = u16> {
    codes.into_iter().map(|Whole(code)| code as u16)
}

fn shown(codes: &StatusCodes) -> Option<Vec<Whole<100, 599>>> {
    Some(codes.iter().map(|code| Whole(code.into())).collect())
}

impl TryFrom<Retry> for RetryPolicy {
    type Error = Invalid;

    /// What is not given is as SNS has it.
    fn try_from(retry: Retry) -> Result<Self, Invalid> {
        let mut policy = Self::builder();
        if let Some(Whole(count)) = retry.num_retries {
            policy = policy.num_retries(count);
        }
        if let Some(Whole(count)) = retry.num_no_delay_retries {
            policy = policy.num_no_delay_retries(count);
        }
        if let Some(Whole(seconds)) = retry.min_delay_target {
            policy = policy.min_delay_target(Duration::from_secs(seconds.into()));
        }
        if let Some(Whole(count)) = retry.num_min_delay_retries {
            policy = policy.num_min_delay_retries(count);
        }
        if let Some(Whole(seconds)) = retry.max_delay_target {
            policy = policy.max_delay_target(Duration::from_secs(seconds.into()));
        }
        if let Some(Whole(count)) = retry.num_max_delay_retries {
            policy = policy.num_max_delay_retries(count);
        }
        if let Some(Word(function)) = retry.backoff_function {
            policy = policy.backoff_function(function);
        }
        policy.build()
    }
}

impl From<&DeliveryOptions> for Delivery {
    fn from(options: &DeliveryOptions) -> Self {
        Self {
            success: shown(options.success()),
            discard: shown(options.discard()),
            retry: Some(options.retry().into()),
            ttl: options.ttl().map(Span),
            rate: options.rate().map(Rate::from),
            concurrency: options.concurrency().map(Whole),
            timeout: options.timeout().map(Span),
            lanes: Some(Whole(options.lanes().into())),
            min_interval: options.min_interval().map(Span),
            batch: options.batch().map(Batch::from),
        }
    }
}

/// A delay as SNS writes it.
fn seconds(delay: Duration) -> Whole<1, 3600> {
    Whole(u32::try_from(delay.as_secs()).unwrap_or(u32::MAX))
}

impl From<&RetryPolicy> for Retry {
    fn from(policy: &RetryPolicy) -> Self {
        Self {
            num_retries: Some(Whole(policy.num_retries())),
            num_no_delay_retries: Some(Whole(policy.num_no_delay_retries())),
            min_delay_target: Some(seconds(policy.min_delay_target())),
            num_min_delay_retries: Some(Whole(policy.num_min_delay_retries())),
            max_delay_target: Some(seconds(policy.max_delay_target())),
            num_max_delay_retries: Some(Whole(policy.num_max_delay_retries())),
            backoff_function: Some(Word(policy.backoff_function())),
        }
    }
}

impl From<subscription::Rate> for Rate {
    fn from(rate: subscription::Rate) -> Self {
        Self { limit: Some(Whole(rate.limit())), period: Some(Span(rate.period())) }
    }
}

impl TryFrom<Batch> for BatchOptions {
    type Error = Invalid;

    fn try_from(batch: Batch) -> Result<Self, Invalid> {
        let required = || Invalid::new("delivery.batch.max", "is required");
        let Whole(max) = batch.max.ok_or_else(required)?;
        let mut options = Self::of(max);
        if let Some(Span(wait)) = batch.wait {
            options = options.wait(wait);
        }
        if let Some(Extent(bytes)) = batch.bytes {
            options = options.limit_bytes(bytes);
        }
        Ok(options)
    }
}

impl From<BatchOptions> for Batch {
    fn from(batch: BatchOptions) -> Self {
        Self {
            max: Some(Whole(batch.max())),
            wait: batch.waits().map(Span),
            bytes: Some(Extent(batch.bytes())),
        }
    }
}

impl From<ContentOptions> for Content {
    fn from(content: ContentOptions) -> Self {
        Self { document: Some(content.document()), envelope: Some(content.envelope()) }
    }
}
