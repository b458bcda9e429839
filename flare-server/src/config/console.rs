//! `[console]`: whether there are pages to look at and operate Flare with.

use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[console]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Console {
    /// Whether they are served, at `/console`.
    pub enable: bool,
}

impl Default for Console {
    /// Where they are built in.
    fn default() -> Self {
        Self { enable: cfg!(feature = "console") }
    }
}

pub(super) fn check(console: &Console) -> Result<(), ConfigError> {
    if console.enable && !cfg!(feature = "console") {
        let reason = "must be false, as this program was built without it: cargo install --path flare-server";
        return Err(ConfigError::new("console.enable", reason));
    }
    Ok(())
}
