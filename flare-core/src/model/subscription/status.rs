//! The words for where a subscription stands. Makes no transition.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a subscription stands. Flare sets it; clients cannot write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SubscriptionStatus {
    /// Created, and on its way into its partition.
    Preparing,
    /// Changes are sent, or wait for demand.
    Active,
    /// An operator paused it: changes are held.
    Paused,
    /// Flare gave up on the client for now: changes are held.
    Suspended,
    /// On its way out, and no longer there for readers.
    Deleting,
    /// This version cannot read it, so it sends nothing for it. Never stored: a node that can read it
    /// shows where it stands.
    #[serde(skip_deserializing)]
    Unreadable,
}

impl SubscriptionStatus {
    /// Those that a reader may see: what is deleting is not there for readers.
    pub const SHOWN: [Self; 5] =
        [Self::Preparing, Self::Active, Self::Paused, Self::Suspended, Self::Unreadable];

    /// The status as JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Suspended => "suspended",
            Self::Deleting => "deleting",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for SubscriptionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
