//! Takes nothing; gives the words that describe how a subscription's notifications are sent, which
//! the model itself reads and writes.

use utoipa::ToSchema;

/// What counts as success, when to try again, and how much at once.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct Delivery {
    /// Status codes by which the client takes a version; 200, 201, 202, 204 unless set.
    #[schema(min_items = 1)]
    success: Option<Vec<u16>>,
    /// Status codes by which the client refuses a version for good.
    discard: Option<Vec<u16>>,
    retry: Option<Retry>,
    /// How long a version is tried, such as `72h`.
    ttl: Option<String>,
    rate: Option<Rate>,
    /// How many requests in flight.
    #[schema(minimum = 1, maximum = 10_000)]
    concurrency: Option<u32>,
    /// How long one request may take, such as `10s`.
    timeout: Option<String>,
    /// Over how many lanes it is spread; at most the concurrency.
    #[schema(minimum = 1, maximum = 1024)]
    lanes: Option<u32>,
}

/// How often and how far apart a failed notification is tried again: SNS's `healthyRetryPolicy`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct Retry {
    #[schema(minimum = 0, maximum = 100)]
    num_retries: Option<u32>,
    #[schema(minimum = 0, maximum = 100)]
    num_no_delay_retries: Option<u32>,
    /// In seconds.
    #[schema(minimum = 1, maximum = 3600)]
    min_delay_target: Option<u32>,
    #[schema(minimum = 0, maximum = 100)]
    num_min_delay_retries: Option<u32>,
    /// In seconds.
    #[schema(minimum = 1, maximum = 3600)]
    max_delay_target: Option<u32>,
    #[schema(minimum = 0, maximum = 100)]
    num_max_delay_retries: Option<u32>,
    backoff_function: Option<Backoff>,
}

/// How delays grow from the smallest to the largest.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum Backoff {
    Linear,
    Arithmetic,
    Geometric,
    Exponential,
}

/// At most `limit` requests in every `period`.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct Rate {
    #[schema(minimum = 1)]
    limit: u32,
    /// Such as `1s`.
    period: String,
}

/// What a notification's body is.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) struct Content {
    /// Whether it has the document.
    document: Option<bool>,
    /// Whether it has the envelope; without, it is the document itself.
    envelope: Option<bool>,
}
