//! How a subscription is doing, in words and figures. Counts nothing itself.

use std::time::Duration;

use super::SubscriptionStatus;
use crate::model::{RecentOutcomes, SubscriptionRates, SubscriptionTimes, Timestamp};

/// How a subscription is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SubscriptionReport {
    /// Where it stands.
    pub status: SubscriptionStatus,
    /// Why it stands there, if not by the user's wish.
    pub reason: Option<String>,
    /// How many documents the client does not have in their newest version yet. Exact.
    pub lag: u64,
    /// Changes of its resource that are still being spread, and are not part of the lag yet.
    pub spreading: u64,
    /// Since how long the oldest of what is pending is so; nothing if none is.
    pub oldest_pending: Duration,
    /// Requests in flight.
    pub in_flight: u64,
    /// Notifications the client accepted.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Notifications the client refused.
    pub discarded: u64,
    /// What becomes of its notifications, a second: the same from every node.
    pub rates: SubscriptionRates,
    /// What became of them in each ten seconds of the last five minutes; nothing before its lanes stored any.
    pub recent: RecentOutcomes,
    /// How long its notifications took lately, the parts of it that are known apart.
    pub times: SubscriptionTimes,
    /// Notifications that were given up and are still listed.
    pub dead_letters: u64,
    /// When the client last accepted one.
    pub last_success_at: Option<Timestamp>,
    /// Why an attempt last failed, in words.
    pub last_error: Option<String>,
    /// When that was. Earlier than `last_success_at`, it is past.
    pub last_error_at: Option<Timestamp>,
    /// Whether the client is taken for down: it is sent one request at a time, now and then, until it
    /// answers one.
    pub probing: bool,
    /// How many attempts have failed since one last succeeded or was refused, or an operator resumed it; of
    /// its lanes, the one that has most.
    pub consecutive_failures: u32,
    /// When something is sent next, if anything is to be.
    pub next_attempt_at: Option<Timestamp>,
    /// The node that works its lanes.
    pub node: Option<String>,
    /// The queue its lanes are woken by: `slot-7` where they share it with others, else the first
    /// lane's own, `lane-<subscription>-0` (the others end in their own number).
    pub queue: String,
    /// When that queue, or one of its lanes', had vanished and was made again. What was in it was found
    /// in the stores.
    pub queue_restored_at: Option<Timestamp>,
    /// How far the documents that were there are delivered, if that was asked for lately.
    pub backfill: Option<BackfillProgress>,
    /// How far everything is delivered again, if that was asked for lately.
    pub resync: Option<BackfillProgress>,
}

/// How far a backfill or resync is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillProgress {
    /// Documents that were looked at.
    pub scanned: u64,
    /// Documents there are to look at, as far as is known.
    pub total: u64,
    /// Whether the client was told of all of them, or they were given up.
    pub done: bool,
}
