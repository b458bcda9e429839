//! Takes the word for who begins a delivery; gives it as a value. Starts nothing.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::Invalid;

/// Who begins: Flare, or the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// Flare sends changes as they come.
    #[default]
    Active,
    /// Nothing is sent until the client asks.
    Passive,
}

impl Mode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Active, Self::Passive];

    /// The mode as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Passive => "passive",
        }
    }
}

impl FromStr for Mode {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| Invalid::new("", "must be active or passive"))
    }
}
