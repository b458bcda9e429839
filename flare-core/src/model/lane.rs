//! Takes a subscription and its number of shards; gives the lanes, and what is remembered of
//! each.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Epoch, Invalid, LaneActivity, SubscriptionId, Timestamp};

/// The queue of one subscription, or of one shard of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneId {
    /// Whose documents it carries.
    pub subscription: SubscriptionId,
    /// Which shard, counted from zero.
    pub shard: u16,
}

impl LaneId {
    /// Shard `shard` of `subscription`.
    pub const fn new(subscription: SubscriptionId, shard: u16) -> Self {
        Self { subscription, shard }
    }
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.subscription, self.shard)
    }
}

impl FromStr for LaneId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refused = || Invalid::new("lane", "must be <subscription>-<shard>");
        let (subscription, shard) = text.rsplit_once('-').ok_or_else(refused)?;
        let id = Self {
            subscription: subscription.parse().map_err(|_| refused())?,
            shard: shard.parse().map_err(|_| refused())?,
        };
        // "+1" and "007" parse too, but one lane has one name.
        if id.to_string() == text { Ok(id) } else { Err(refused()) }
    }
}

/// What a lane's owner remembers beside its rows: counters and the state of its client.
///
/// Counters only grow over the lane's life; a new owner goes on from what its predecessor stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LaneState {
    /// Which lane.
    pub lane: LaneId,
    /// The epoch of the owner that wrote it.
    pub epoch: Epoch,
    /// How many lanes the subscription had then; zero, if that was not noted.
    #[serde(default)]
    pub lanes: u16,
    /// The node that works it.
    pub node: Option<String>,
    /// Requests in flight when it was written.
    pub in_flight: u32,
    /// Notifications the client accepted.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Notifications the client refused.
    pub discarded: u64,
    /// Failures of the connection, timeout or 5xx kind since the last answer of another kind.
    pub failures_in_a_row: u32,
    /// Attempts that failed since one last succeeded or was refused, of whatever kind.
    #[serde(default)]
    pub consecutive_failures: u32,
    /// Since when every attempt failed.
    pub failing_since: Option<Timestamp>,
    /// Nothing is sent before this time, because the client asked for it.
    pub hold_until: Option<Timestamp>,
    /// When the last hold or spell of probing ended.
    pub released_at: Option<Timestamp>,
    /// When the client last accepted one.
    pub last_success_at: Option<Timestamp>,
    /// When an attempt last failed.
    pub last_error_at: Option<Timestamp>,
    /// Why it failed, in words.
    pub last_error: Option<String>,
    /// When its queue had vanished and was made again.
    pub queue_restored_at: Option<Timestamp>,
    /// What became of its notifications lately, and how long that took; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Box<LaneActivity>>,
    /// When it was written.
    pub updated_at: Timestamp,
    /// What a newer version keeps with it, and this one does not know.
    #[serde(flatten)]
    pub kept: BTreeMap<String, serde_json::Value>,
}

impl LaneState {
    /// The state of a lane that has done nothing yet.
    pub fn new(lane: LaneId) -> Self {
        Self {
            lane,
            epoch: Epoch::ZERO,
            lanes: 0,
            node: None,
            in_flight: 0,
            delivered: 0,
            failed: 0,
            discarded: 0,
            failures_in_a_row: 0,
            consecutive_failures: 0,
            failing_since: None,
            hold_until: None,
            released_at: None,
            last_success_at: None,
            last_error_at: None,
            last_error: None,
            queue_restored_at: None,
            activity: None,
            updated_at: Timestamp::EPOCH,
            kept: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_from_before_queues_were_watched_or_lanes_counted_is_still_read() {
        let state = LaneState::new(LaneId::new(SubscriptionId::from_bytes([1; 16]), 3));
        let text = serde_json::to_string(&state).unwrap();
        let old = text.replace(r#""queueRestoredAt":null,"#, "").replace(r#""lanes":0,"#, "");
        assert_eq!(text.len() - old.len(), 33);
        assert_eq!(serde_json::from_str::<LaneState>(&old).unwrap(), state);
    }
}
