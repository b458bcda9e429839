//! Takes a name; gives where the wake-ups of lanes wait.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Invalid;

/// Where the wake-ups of lanes wait.
///
/// ```
/// use flare_core::model::Placement;
///
/// let placement: Placement = "isolated".parse()?;
/// assert_eq!(placement, Placement::Isolated);
/// assert_eq!(Placement::default().to_string(), "shared");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Placement {
    /// In one queue per slot, together with those of the slot's other lanes: few queues to wait
    /// for, however many subscriptions there are. A wake-up only says that there may be something to
    /// do and is settled when it is heard, so lanes do not hold each other up there.
    #[default]
    Shared,
    /// In a queue of each lane's own, for those who want to see, limit or bill each in their queue
    /// system.
    Isolated,
}

impl Placement {
    const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Isolated => "isolated",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Placement {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let known = [Self::Shared, Self::Isolated];
        known.into_iter().find(|placement| placement.name() == text).ok_or_else(|| {
            Invalid::new("placement", format!("{text:?} is neither shared nor isolated"))
        })
    }
}
