//! Takes how many notifications a client wants in one request; gives the limits checked, with defaults.
//! Gathers nothing.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::model::Invalid;
use crate::model::duration::checked_positive;
use crate::model::invalid::in_range;

/// The most notifications in one request.
pub const MAX_BATCH: u32 = 1_000;
/// The longest a notification may wait for others that go with it.
pub const MAX_BATCH_WAIT: Duration = Duration::from_secs(5);
/// The least and the most bytes that a request of many may be allowed.
pub const BATCH_BYTES: RangeInclusive<u64> = 1 << 10..=64 << 20;

const MAX: RangeInclusive<u32> = 2..=MAX_BATCH;
const DEFAULT_BYTES: u64 = 1 << 20;

/// Many notifications in one request, each of another document.
///
/// ```
/// use flare_core::model::subscription::BatchOptions;
/// use std::time::Duration;
///
/// let batch = BatchOptions::of(100).wait(Duration::from_millis(200));
/// assert_eq!((batch.max(), batch.bytes()), (100, 1 << 20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    max: u32,
    wait: Option<Duration>,
    bytes: u64,
}

impl BatchOptions {
    /// Up to `max` in one request (2 to 1000), in up to 1 MiB; whatever is there goes at once. Checked with
    /// the subscription that it is part of.
    pub fn of(max: u32) -> Self {
        Self { max, wait: None, bytes: DEFAULT_BYTES }
    }

    /// The same, where the first one waits so long (up to 5 s) for others to go with it.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// The same with a body of at most so many bytes (1 KiB to 64 MiB); one that is larger by itself goes
    /// alone.
    #[must_use]
    pub fn limit_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// The most notifications in one request.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// How long a notification waits for others; `None`: not at all.
    pub fn waits(&self) -> Option<Duration> {
        self.wait
    }

    /// The most bytes of a request's body, if it tells of more than one.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        in_range(self.max, &MAX).map_err(|invalid| invalid.within("max"))?;
        if let Some(wait) = self.wait {
            if wait > MAX_BATCH_WAIT {
                return Err(Invalid::new("wait", "must be at most \"5s\""));
            }
            checked_positive(wait).map_err(|invalid| invalid.within("wait"))?;
        }
        if !BATCH_BYTES.contains(&self.bytes) {
            return Err(Invalid::new("bytes", "must be from \"1KiB\" to \"64MiB\""));
        }
        Ok(())
    }
}
