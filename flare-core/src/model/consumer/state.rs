//! What a consumer's owner knows of it and stores now and then, for its successor and for operators.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Checkpoint;
use crate::model::{Invalid, NodeId, WindowRates};

/// What a consumer's owner stores of it: up to where it has come, and what it counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ConsumerState {
    /// The node that wrote this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Which source that is of, as its settings' fingerprint: a place in one is none in another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Box<str>>,
    /// Up to where all is done, where Flare keeps that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<Checkpoint>,
    /// Messages that were received.
    pub received: u64,
    /// Documents that were created, updated or deleted.
    pub accepted: u64,
    /// Documents that were as they were already, or older.
    pub unchanged: u64,
    /// Messages that became no document, or not all that they say.
    pub rejected: u64,
    /// How many of those by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// How many a second lately.
    pub rates: ConsumerRates,
    /// When a message was received last, in nanoseconds of store time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_at: Option<i64>,
    /// What went wrong last, until it went well again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When that was, in nanoseconds of store time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_at: Option<i64>,
    /// Messages that are not settled yet, if the broker says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// How old the oldest of them is, in milliseconds, if the broker says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_millis: Option<u64>,
    /// When this was written, in nanoseconds of store time.
    pub stored_at: i64,
}

/// What happens a second, over the last minute and the last five.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ConsumerRates {
    /// Messages received.
    pub received: WindowRates,
    /// Documents created, updated or deleted.
    pub accepted: WindowRates,
    /// Messages rejected.
    pub rejected: WindowRates,
}

impl ConsumerState {
    /// The text a store keeps.
    pub fn stored(&self) -> Result<String, Invalid> {
        serde_json::to_string(self).map_err(|error| Invalid::new("", format!("{error}")))
    }

    /// Reads the text of the [stored form](Self::stored); what it does not know it leaves aside.
    pub fn from_stored(text: &str) -> Result<Self, Invalid> {
        serde_json::from_str(text).map_err(|error| Invalid::new("", format!("is damaged: {error}")))
    }
}
