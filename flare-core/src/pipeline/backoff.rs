//! Takes a retry policy and how often an attempt failed; gives how long to wait, or that it is
//! enough. Pure.

use std::time::Duration;

use crate::model::subscription::{BackoffFunction, RetryPolicy};

/// How much jitter adds at most; it never subtracts.
const JITTER: f64 = 0.2;

/// How long to wait after `failures` failed attempts (1 after the first); `None` once the
/// retries are used up. `random` is from 0 up to 1.
pub(crate) fn delay(policy: &RetryPolicy, failures: u32, random: f64) -> Option<Duration> {
    let retry = failures.saturating_sub(1);
    if retry >= policy.num_retries() {
        return None;
    }
    let seconds = seconds(policy, retry);
    Some(Duration::from_secs_f64(seconds * (1.0 + JITTER * random.clamp(0.0, 1.0))))
}

/// The wait before retry number `retry` (from zero), by phase: immediate, pre-backoff, backoff,
/// post-backoff.
fn seconds(policy: &RetryPolicy, retry: u32) -> f64 {
    let (min, max) = (f64::from(policy.min_delay_target()), f64::from(policy.max_delay_target()));
    let Some(retry) = retry.checked_sub(policy.num_no_delay_retries()) else {
        return 0.0;
    };
    let Some(step) = retry.checked_sub(policy.num_min_delay_retries()) else {
        return min;
    };
    let steps = policy.num_backoff_retries();
    if step >= steps {
        return max;
    }
    if steps == 1 {
        return min;
    }
    let (i, n) = (f64::from(step), f64::from(steps));
    match policy.backoff_function() {
        BackoffFunction::Linear => min + (max - min) * i / (n - 1.0),
        BackoffFunction::Arithmetic => min + (max - min) * i * (i + 1.0) / ((n - 1.0) * n),
        BackoffFunction::Geometric => min * (max / min).powf(i / (n - 1.0)),
        BackoffFunction::Exponential => {
            min + (max - min) * (i.exp2() - 1.0) / ((n - 1.0).exp2() - 1.0)
        }
    }
}
