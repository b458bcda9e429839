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
    let (min, max) = (policy.min_delay_target(), policy.max_delay_target());
    let (min, max) = (min.as_secs_f64(), max.as_secs_f64());
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Waits in seconds before each retry, without jitter.
    fn waits(policy: &RetryPolicy) -> Vec<f64> {
        let waits = (1..=policy.num_retries()).map(|failures| delay(policy, failures, 0.0));
        let waits = waits.map(|wait| wait.unwrap().as_secs_f64());
        waits.map(|wait| (wait * 1_000.0).round() / 1_000.0).collect()
    }

    fn five_steps(function: BackoffFunction) -> RetryPolicy {
        RetryPolicy::builder()
            .num_retries(8)
            .num_no_delay_retries(1)
            .min_delay_target(Duration::from_secs(10))
            .num_min_delay_retries(1)
            .max_delay_target(Duration::from_secs(160))
            .num_max_delay_retries(1)
            .backoff_function(function)
            .build()
            .unwrap()
    }

    /// Computed by hand: 0 (immediate), 10 (pre-backoff), five steps from 10 to 160, 160 (post).
    #[test]
    fn each_function_by_hand() {
        let cases = [
            (BackoffFunction::Linear, [10.0, 47.5, 85.0, 122.5, 160.0]),
            (BackoffFunction::Arithmetic, [10.0, 25.0, 55.0, 100.0, 160.0]),
            (BackoffFunction::Geometric, [10.0, 20.0, 40.0, 80.0, 160.0]),
            (BackoffFunction::Exponential, [10.0, 20.0, 40.0, 80.0, 160.0]),
        ];
        for (function, steps) in cases {
            let mut expected = vec![0.0, 10.0];
            expected.extend(steps);
            expected.push(160.0);
            assert_eq!(waits(&five_steps(function)), expected, "{function:?}");
        }
    }

    /// With 10 to 40 in four steps: exponential 10 + 30·(2^i − 1)/7, geometric 10·4^(i/3).
    #[test]
    fn exponential_and_geometric_differ_where_they_should() {
        let policy = |function| {
            RetryPolicy::builder()
                .num_retries(4)
                .min_delay_target(Duration::from_secs(10))
                .max_delay_target(Duration::from_secs(40))
                .backoff_function(function)
                .build()
                .unwrap()
        };
        assert_eq!(waits(&policy(BackoffFunction::Exponential)), [10.0, 14.286, 22.857, 40.0]);
        assert_eq!(waits(&policy(BackoffFunction::Geometric)), [10.0, 15.874, 25.198, 40.0]);
    }

    #[test]
    fn one_step_waits_the_least() {
        let policy = RetryPolicy::builder().num_retries(1).build().unwrap();
        assert_eq!(waits(&policy), [20.0]);
    }

    #[test]
    fn after_the_last_retry_it_is_enough() {
        let policy = RetryPolicy::builder().num_retries(0).build().unwrap();
        assert_eq!(delay(&policy, 1, 0.0), None);
        let policy = RetryPolicy::builder().num_retries(3).build().unwrap();
        assert!(delay(&policy, 3, 0.0).is_some());
        assert_eq!(delay(&policy, 4, 0.0), None);
        assert_eq!(delay(&policy, u32::MAX, 0.0), None);
    }

    #[test]
    fn the_default_lasts_about_three_days() {
        let waits = waits(&RetryPolicy::default());
        assert_eq!(waits.len(), 83);
        assert_eq!(waits[..3], [5.0, 5.0, 5.0]);
        assert_eq!(waits[82], 3600.0);
        let days = waits.iter().sum::<f64>() / 86_400.0;
        assert!((2.8..3.3).contains(&days), "{days}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn jitter_only_adds_and_never_more_than_a_fifth(
            retries in 1..100u32, min in 1..1800u64, more in 0..1800u64, failures in 1..100u32, random in 0.0..1.0f64,
        ) {
            let policy = RetryPolicy::builder()
                .num_retries(retries)
                .min_delay_target(Duration::from_secs(min))
                .max_delay_target(Duration::from_secs(min + more))
                .backoff_function(BackoffFunction::Exponential)
                .build()
                .unwrap();
            let plain = delay(&policy, failures, 0.0);
            let jittered = delay(&policy, failures, random);
            prop_assert_eq!(plain.is_some(), failures <= retries);
            if let (Some(plain), Some(jittered)) = (plain, jittered) {
                prop_assert!(jittered >= plain && jittered <= plain.mul_f64(1.2 + 1e-9));
                prop_assert!(plain >= Duration::from_secs(min));
                prop_assert!(plain <= Duration::from_secs(min + more) + Duration::from_micros(1));
            }
        }
    }
}
