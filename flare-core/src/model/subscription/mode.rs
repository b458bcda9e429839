//! Takes the word for who begins a delivery; gives it as a value. Starts nothing.

use std::str::FromStr;

use serde::Serialize;

use crate::model::Invalid;

/// Who begins: Flare, or the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// Flare sends changes as they come.
    #[default]
    Active,
    /// Nothing is sent until the client asks.
    Passive,
}

impl FromStr for Mode {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "active" => Ok(Self::Active),
            "passive" => Ok(Self::Passive),
            _ => Err(Invalid::new("", "must be active or passive")),
        }
    }
}
