//! Takes the policy a client wants to be told under; gives it checked, with defaults.
//! Enforces nothing.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::batch::BatchOptions;
use super::rate::Rate;
use super::retry::RetryPolicy;
use super::status_codes::StatusCodes;
use crate::model::Invalid;
use crate::model::duration::checked_positive;
use crate::model::invalid::in_range;

/// The most requests in flight a subscription may ask for.
pub const MAX_CONCURRENCY: u32 = 10_000;
/// The most lanes a subscription may be spread over.
pub const MAX_LANES: u32 = 1_024;
/// The longest time one request may take.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The longest time a client may be told nothing of a document's further changes.
pub const MAX_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

const CONCURRENCY: RangeInclusive<u32> = 1..=MAX_CONCURRENCY;
const LANES: RangeInclusive<u32> = 1..=MAX_LANES;

/// What counts as success, when to try again, and how much at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOptions {
    pub(crate) success: StatusCodes,
    pub(crate) discard: StatusCodes,
    pub(crate) retry: RetryPolicy,
    pub(crate) ttl: Option<Duration>,
    pub(crate) rate: Option<Rate>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) lanes: u32,
    pub(crate) min_interval: Option<Duration>,
    pub(crate) batch: Option<BatchOptions>,
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
            min_interval: None,
            batch: None,
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

    /// How long a client is told nothing more of a document that it was told of; `None`: it is told
    /// of every change as soon as may be.
    pub fn min_interval(&self) -> Option<Duration> {
        self.min_interval
    }

    /// How many notifications go in one request; `None`: each has its own.
    pub fn batch(&self) -> Option<BatchOptions> {
        self.batch
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
        if let Some(interval) = self.min_interval {
            checked_interval(interval).map_err(|invalid| invalid.within("minInterval"))?;
        }
        if let Some(batch) = self.batch {
            batch.check().map_err(|invalid| invalid.within("batch"))?;
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
}

fn checked_interval(interval: Duration) -> Result<Duration, Invalid> {
    if interval > MAX_INTERVAL {
        return Err(Invalid::new("", "must be at most \"24h\""));
    }
    checked_positive(interval)
}

fn checked_timeout(timeout: Duration) -> Result<Duration, Invalid> {
    if timeout > MAX_TIMEOUT {
        return Err(Invalid::new("", "must be at most \"15m\""));
    }
    checked_positive(timeout)
}
