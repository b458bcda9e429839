//! Takes instants from a clock or a store; gives one comparable, printable value. Never reads a
//! clock itself.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant: nanoseconds since the Unix epoch, good for the years 1677 to 2262.
///
/// Arithmetic saturates, so that a far-away retry never wraps into the past. Printed as RFC 3339
/// in UTC with as many fractional digits as it needs; stored as the integer.
///
/// ```
/// use std::time::Duration;
/// use flare_core::model::Timestamp;
///
/// let start = Timestamp::from_unix_millis(1_700_000_000_500);
/// assert_eq!(start.to_string(), "2023-11-14T22:13:20.5Z");
/// assert_eq!(start + Duration::from_millis(500) - start, Duration::from_millis(500));
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(i64::MAX);

    /// The instant this many nanoseconds after the Unix epoch.
    pub const fn from_unix_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The instant this many milliseconds after the Unix epoch.
    pub const fn from_unix_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The instant this many seconds after the Unix epoch.
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn unix_nanos(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since the Unix epoch, rounded down.
    pub const fn unix_millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000_000)
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        u64::try_from(self.0.saturating_sub(earlier.0)).map_or(Duration::ZERO, Duration::from_nanos)
    }
}

fn saturating_nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(duration)))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(duration)))
    }
}

impl std::ops::Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(instant) => instant.fmt(f),
            // Every i64 of nanoseconds lies within jiff's years -9999 to 9999.
            Err(_) => write!(f, "{}ns", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH - Timestamp::MAX, Duration::ZERO);
        assert_eq!(Timestamp::EPOCH + Duration::MAX, Timestamp::MAX);
    }

    #[test]
    fn prints_the_whole_range() {
        for nanos in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert!(Timestamp::from_unix_nanos(nanos).to_string().ends_with('Z'), "{nanos}");
        }
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn rounds_down_before_the_epoch_too() {
        assert_eq!(Timestamp::from_unix_nanos(-1).unix_millis(), -1);
        assert_eq!(Timestamp::from_unix_nanos(-1).unix_seconds(), -1);
    }
}
