//! Takes an SNS `healthyRetryPolicy`; gives it checked, with defaults. Computes no delay.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Invalid;
use crate::model::invalid::in_range;

const COUNT: RangeInclusive<u32> = 0..=100;
const SECONDS: RangeInclusive<u64> = 1..=3600;

/// How often and how far apart a failed notification is tried again, in SNS's terms.
///
/// The default is Flare's own (about three days); [`RetryPolicy::builder`] begins with SNS's
/// defaults, as an object in JSON does.
///
/// ```
/// use std::time::Duration;
///
/// use flare_core::model::subscription::RetryPolicy;
///
/// assert_eq!(RetryPolicy::default().num_retries(), 83);
/// let minute = Duration::from_secs(60);
/// let policy = RetryPolicy::builder().num_retries(10).max_delay_target(minute).build()?;
/// assert_eq!(policy.min_delay_target(), Duration::from_secs(20));
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    num_retries: u32,
    num_no_delay_retries: u32,
    min_delay_target: Duration,
    num_min_delay_retries: u32,
    max_delay_target: Duration,
    num_max_delay_retries: u32,
    backoff_function: BackoffFunction,
}

/// How delays grow from the smallest to the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BackoffFunction {
    /// By equal steps.
    #[default]
    Linear,
    /// By steps that grow evenly.
    Arithmetic,
    /// By equal factors.
    Geometric,
    /// By steps that double.
    Exponential,
}

/// Puts a [`RetryPolicy`] together, from SNS's defaults.
#[derive(Debug, Clone)]
pub struct RetryPolicyBuilder {
    policy: RetryPolicy,
    /// Which of the two to blame when they contradict each other.
    min_given: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            num_retries: 83,
            num_no_delay_retries: 0,
            min_delay_target: Duration::from_secs(5),
            num_min_delay_retries: 2,
            max_delay_target: Duration::from_secs(3600),
            num_max_delay_retries: 69,
            backoff_function: BackoffFunction::Exponential,
        }
    }
}

impl RetryPolicy {
    /// A policy with SNS's defaults: 3 retries, 20 seconds apart.
    pub fn builder() -> RetryPolicyBuilder {
        RetryPolicyBuilder { policy: Self::sns(), min_given: false }
    }

    pub(super) fn sns() -> Self {
        Self {
            num_retries: 3,
            num_no_delay_retries: 0,
            min_delay_target: Duration::from_secs(20),
            num_min_delay_retries: 0,
            max_delay_target: Duration::from_secs(20),
            num_max_delay_retries: 0,
            backoff_function: BackoffFunction::Linear,
        }
    }

    /// How many retries there are after the first attempt.
    pub fn num_retries(&self) -> u32 {
        self.num_retries
    }

    /// How many of them come at once, first.
    pub fn num_no_delay_retries(&self) -> u32 {
        self.num_no_delay_retries
    }

    /// The smallest delay.
    pub fn min_delay_target(&self) -> Duration {
        self.min_delay_target
    }

    /// How many retries wait the smallest delay, before the backoff.
    pub fn num_min_delay_retries(&self) -> u32 {
        self.num_min_delay_retries
    }

    /// The largest delay.
    pub fn max_delay_target(&self) -> Duration {
        self.max_delay_target
    }

    /// How many retries wait the largest delay, after the backoff.
    pub fn num_max_delay_retries(&self) -> u32 {
        self.num_max_delay_retries
    }

    /// How delays grow in between.
    pub fn backoff_function(&self) -> BackoffFunction {
        self.backoff_function
    }

    /// How many retries are left for the backoff between the other phases.
    pub fn num_backoff_retries(&self) -> u32 {
        self.num_retries.saturating_sub(self.fixed())
    }

    /// The retries of the phases with a fixed delay.
    fn fixed(&self) -> u32 {
        self.num_no_delay_retries
            .saturating_add(self.num_min_delay_retries)
            .saturating_add(self.num_max_delay_retries)
    }
}

impl RetryPolicyBuilder {
    /// Retries after the first attempt, 0 to 100.
    #[must_use]
    pub fn num_retries(mut self, count: u32) -> Self {
        self.policy.num_retries = count;
        self
    }

    /// Retries without delay, first of all.
    #[must_use]
    pub fn num_no_delay_retries(mut self, count: u32) -> Self {
        self.policy.num_no_delay_retries = count;
        self
    }

    /// The smallest delay: whole seconds, from 1 to 3600.
    #[must_use]
    pub fn min_delay_target(mut self, delay: Duration) -> Self {
        self.policy.min_delay_target = delay;
        self.min_given = true;
        self
    }

    /// Retries with the smallest delay, before the backoff.
    #[must_use]
    pub fn num_min_delay_retries(mut self, count: u32) -> Self {
        self.policy.num_min_delay_retries = count;
        self
    }

    /// The largest delay: whole seconds, from 1 to 3600.
    #[must_use]
    pub fn max_delay_target(mut self, delay: Duration) -> Self {
        self.policy.max_delay_target = delay;
        self
    }

    /// Retries with the largest delay, after the backoff.
    #[must_use]
    pub fn num_max_delay_retries(mut self, count: u32) -> Self {
        self.policy.num_max_delay_retries = count;
        self
    }

    /// How delays grow in between.
    #[must_use]
    pub fn backoff_function(mut self, function: BackoffFunction) -> Self {
        self.policy.backoff_function = function;
        self
    }

    /// The policy, if it keeps SNS's limits.
    pub fn build(self) -> Result<RetryPolicy, Invalid> {
        let policy = self.policy;
        for (name, value) in [
            ("numRetries", policy.num_retries),
            ("numNoDelayRetries", policy.num_no_delay_retries),
            ("numMinDelayRetries", policy.num_min_delay_retries),
            ("numMaxDelayRetries", policy.num_max_delay_retries),
        ] {
            in_range(value, &COUNT).map_err(|invalid| invalid.within(name))?;
        }
        let (min, max) = (policy.min_delay_target, policy.max_delay_target);
        for (name, delay) in [("minDelayTarget", min), ("maxDelayTarget", max)] {
            if delay.subsec_nanos() > 0 || !SECONDS.contains(&delay.as_secs()) {
                return Err(Invalid::new(name, "must be whole seconds, from 1 to 3600"));
            }
        }
        let (min, max) = (min.as_secs(), max.as_secs());
        if min > max {
            return Err(match self.min_given {
                true => Invalid::new(
                    "minDelayTarget",
                    format!("must not be above maxDelayTarget, which is {max}"),
                ),
                false => Invalid::new(
                    "maxDelayTarget",
                    format!("must not be below minDelayTarget, which is {min}"),
                ),
            });
        }
        if policy.fixed() > policy.num_retries {
            let reason = format!(
                "must be at least the no-delay, min-delay and max-delay retries together: {}",
                policy.fixed()
            );
            return Err(Invalid::new("numRetries", reason));
        }
        Ok(policy)
    }
}

impl BackoffFunction {
    /// Every function there is.
    pub const ALL: [Self; 4] = [Self::Linear, Self::Arithmetic, Self::Geometric, Self::Exponential];

    /// The function as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Arithmetic => "arithmetic",
            Self::Geometric => "geometric",
            Self::Exponential => "exponential",
        }
    }
}

impl FromStr for BackoffFunction {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|function| function.as_str() == text);
        let reason = "must be linear, arithmetic, geometric or exponential";
        found.ok_or_else(|| Invalid::new("", reason))
    }
}
