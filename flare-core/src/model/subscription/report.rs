//! Takes nothing; gives the words for how a subscription is doing. Counts nothing itself.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::SubscriptionStatus;
use crate::model::{Timestamp, timestamp};

/// How a subscription is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionReport {
    /// Where it stands.
    pub status: SubscriptionStatus,
    /// Why it stands there, if not by the user's wish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many documents the client does not have in their newest version yet. Exact.
    pub lag: u64,
    /// Changes of its resource that are still being spread, and are not part of the lag yet.
    pub spreading: u64,
    /// Since how long the oldest of what is pending is so; nothing if none is.
    #[serde(rename = "oldestPendingSeconds", serialize_with = "seconds")]
    pub oldest_pending: Duration,
    /// Requests in flight.
    pub in_flight: u64,
    /// Notifications the client accepted.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Notifications the client refused.
    pub discarded: u64,
    /// Notifications that were given up and are still listed.
    pub dead_letters: u64,
    /// When the client last accepted one.
    #[serde(serialize_with = "timestamp::as_text_if_any")]
    pub last_success_at: Option<Timestamp>,
    /// Why an attempt last failed, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When that was. Earlier than `last_success_at`, it is past.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "timestamp::as_text_if_any")]
    pub last_error_at: Option<Timestamp>,
    /// Whether the client is taken for down: it is sent one request at a time, now and then, until it
    /// answers one.
    pub probing: bool,
    /// How many attempts have failed since one last succeeded or was refused, or somebody resumed it; of
    /// its lanes, the one that has most.
    pub consecutive_failures: u32,
    /// When something is sent next, if anything is to be.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "timestamp::as_text_if_any")]
    pub next_attempt_at: Option<Timestamp>,
    /// The node that works its lanes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The queue its lanes are woken by: `slot-7` where they share it with others, else the first
    /// lane's own, `lane-<subscription>-0` (the others end in their own number).
    pub queue: String,
    /// When that queue, or one of its lanes', had vanished and was made again. What was in it was found
    /// in the stores.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "timestamp::as_text_if_any")]
    pub queue_restored_at: Option<Timestamp>,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs())
}
