//! Takes how many requests a client allows in which time; gives the limit checked. Counts nothing.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::model::Invalid;
use crate::model::duration::checked_positive;
use crate::model::invalid::in_range;

const LIMIT: RangeInclusive<u32> = 1..=u32::MAX;

/// At most `limit` requests in every `period`.
///
/// ```
/// use flare_core::model::subscription::Rate;
/// use std::time::Duration;
///
/// let rate = Rate::new(100, Duration::from_secs(1))?;
/// assert_eq!(rate.burst(), 10);
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    limit: u32,
    period: Duration,
}

impl Rate {
    /// A rate of `limit` (1 or more) in `period` (whole milliseconds, not zero).
    pub fn new(limit: u32, period: Duration) -> Result<Self, Invalid> {
        in_range(limit, &LIMIT).map_err(|invalid| invalid.within("limit"))?;
        checked_positive(period).map_err(|invalid| invalid.within("period"))?;
        Ok(Self { limit, period })
    }

    /// How many requests.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// In which time.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// How many requests may go out at once: what the rate allows in 100 ms, at least one.
    pub fn burst(&self) -> u64 {
        let burst = u128::from(self.limit) * 100 / self.period.as_millis().max(1);
        u64::try_from(burst).unwrap_or(u64::MAX).max(1)
    }
}
