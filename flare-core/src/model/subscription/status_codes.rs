//! Takes status codes in any order; gives a small sorted set. Judges no response.

use std::ops::RangeInclusive;

use crate::model::Invalid;
use crate::model::invalid::in_range;

const CODES: RangeInclusive<u32> = 100..=599;

/// A set of HTTP status codes, 100 to 599.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusCodes(Vec<u16>);

impl StatusCodes {
    /// The set of these codes; repeated ones count once.
    ///
    /// ```
    /// use flare_core::model::subscription::StatusCodes;
    /// let codes = StatusCodes::new([204, 200, 204])?;
    /// assert!(codes.contains(200) && !codes.contains(500));
    /// assert_eq!(StatusCodes::new([200, 999]).unwrap_err().field(), "[1]");
    /// # Ok::<(), flare_core::model::Invalid>(())
    /// ```
    pub fn new(codes: impl IntoIterator<Item = u16>) -> Result<Self, Invalid> {
        let checked = codes.into_iter().enumerate().map(|(i, code)| {
            in_range(code.into(), &CODES)
                .map(|_| code)
                .map_err(|invalid| invalid.within(&format!("[{i}]")))
        });
        checked.collect::<Result<Vec<u16>, _>>().map(Self::sorted)
    }

    /// What counts as success unless it is set.
    pub(crate) fn success() -> Self {
        Self(vec![200, 201, 202, 204])
    }

    /// Whether the set has this code.
    pub fn contains(&self, code: u16) -> bool {
        self.0.binary_search(&code).is_ok()
    }

    /// The codes, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.0.iter().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest code that is in both sets.
    pub(crate) fn overlap(&self, other: &Self) -> Option<u16> {
        self.iter().find(|code| other.contains(*code))
    }

    fn sorted(mut codes: Vec<u16>) -> Self {
        codes.sort_unstable();
        codes.dedup();
        Self(codes)
    }
}
