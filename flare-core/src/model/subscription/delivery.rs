//! Takes the policy a client wants to be told under; gives it checked, with defaults.
//! Enforces nothing.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;

use super::rate::Rate;
use super::retry::RetryPolicy;
use super::status_codes::StatusCodes;
use crate::model::Invalid;
use crate::model::duration::{checked_positive, serialize_option};
use crate::model::json::{Json, in_range};

/// The most requests in flight a subscription may ask for.
pub const MAX_CONCURRENCY: u32 = 10_000;
/// The most lanes a subscription may be spread over.
pub const MAX_LANES: u32 = 1_024;
/// The longest time one request may take.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(15 * 60);

const CONCURRENCY: RangeInclusive<u32> = 1..=MAX_CONCURRENCY;
const LANES: RangeInclusive<u32> = 1..=MAX_LANES;

/// What counts as success, when to try again, and how much at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryOptions {
    pub(crate) success: StatusCodes,
    pub(crate) discard: StatusCodes,
    pub(crate) retry: RetryPolicy,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_option")]
    pub(crate) ttl: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_option")]
    pub(crate) timeout: Option<Duration>,
    pub(crate) lanes: u32,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            success: StatusCodes::success(),
            discard: StatusCodes::default(),
            retry: RetryPolicy::default(),
            ttl: None,
            rate: None,
            concurrency: None,
            timeout: None,
            lanes: 1,
        }
    }
}

impl DeliveryOptions {
    /// The status codes by which the client takes a version.
    pub fn success(&self) -> &StatusCodes {
        &self.success
    }

    /// The status codes by which the client refuses a version for good.
    pub fn discard(&self) -> &StatusCodes {
        &self.discard
    }

    /// When a failed notification is tried again.
    pub fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    /// How long a version is tried; `None`: as long as the configuration says.
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// How many requests in which time; `None`: no limit.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// How many requests in flight; `None`: as the configuration says.
    pub fn concurrency(&self) -> Option<u32> {
        self.concurrency
    }

    /// How long one request may take; `None`: as the configuration says.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Over how many lanes the subscription is spread. At most the concurrency, which is checked
    /// here only where the subscription has its own.
    pub fn lanes(&self) -> u16 {
        // Construction keeps it within MAX_LANES.
        self.lanes as u16
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if self.success.is_empty() {
            return Err(Invalid::new("success", "must have at least one status code"));
        }
        if let Some(code) = self.discard.overlap(&self.success) {
            let reason = format!("must not have {code}, which is in delivery.success");
            return Err(Invalid::new("discard", reason));
        }
        if let Some(ttl) = self.ttl {
            checked_positive(ttl).map_err(|invalid| invalid.within("ttl"))?;
        }
        if let Some(timeout) = self.timeout {
            checked_timeout(timeout).map_err(|invalid| invalid.within("timeout"))?;
        }
        if let Some(concurrency) = self.concurrency {
            in_range(concurrency, &CONCURRENCY).map_err(|e| e.within("concurrency"))?;
        }
        in_range(self.lanes, &LANES).map_err(|invalid| invalid.within("lanes"))?;
        match self.concurrency {
            Some(concurrency) if self.lanes > concurrency => {
                let reason = format!("must not be above delivery.concurrency, {concurrency}");
                Err(Invalid::new("lanes", reason))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn read(json: Json<'_>) -> Result<Self, Invalid> {
        let mut fields = json.fields()?;
        let default = Self::default();
        let delivery = Self {
            success: fields.read("success", StatusCodes::read)?.unwrap_or(default.success),
            discard: fields.read("discard", StatusCodes::read)?.unwrap_or(default.discard),
            retry: fields.read("retry", RetryPolicy::read)?.unwrap_or(default.retry),
            ttl: fields.read("ttl", Json::duration)?,
            rate: fields.read("rate", Rate::read)?,
            concurrency: fields.read("concurrency", |n| n.integer(&CONCURRENCY))?,
            timeout: fields.read("timeout", Json::duration)?,
            lanes: fields.read("lanes", |n| n.integer(&LANES))?.unwrap_or(default.lanes),
        };
        fields.finish(&[
            "success",
            "discard",
            "retry",
            "ttl",
            "rate",
            "concurrency",
            "timeout",
            "lanes",
        ])?;
        Ok(delivery)
    }
}

fn checked_timeout(timeout: Duration) -> Result<Duration, Invalid> {
    if timeout > MAX_TIMEOUT {
        return Err(Invalid::new("", "must be at most \"15m\""));
    }
    checked_positive(timeout)
}
