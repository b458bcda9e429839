//! Takes who sits where, what is pending of each and what their lanes remember; gives the line of each. Three scans,
//! whatever the number of subscriptions; of their settings only those are read that changed since the last look.

use std::collections::HashMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};

use super::known::{KnownSubscription, KnownSubscriptions};
use crate::error::Result;
use crate::model::subscription::SubscriptionSummary;
use crate::model::{LaneState, SubscriptionId, SubscriptionRates, SubscriptionStatus, Timestamp};
use crate::pipeline::context::Context;
use crate::pipeline::health::ClientHealth;
use crate::port::{Member, Pending};

/// The lines of all subscriptions, and the slots of their lanes.
pub(super) async fn summarize(
    context: &Context,
    known: &mut KnownSubscriptions,
    now: Timestamp,
) -> Result<(Vec<SubscriptionSummary>, Vec<u32>)> {
    let repository = &context.repository;
    let members: Vec<Member> = repository.scan_members().try_collect().await?;
    known.follow(context, &members).await?;
    let pending: HashMap<SubscriptionId, Pending> = repository.pending_each().try_collect().await?;
    let mut lines: HashMap<SubscriptionId, SummaryLine> = HashMap::with_capacity(members.len());
    for member in members {
        // One that was deleted meanwhile is not there any more.
        if let Some(known) = known.get(member.subscription) {
            let pending = pending.get(&member.subscription).copied().unwrap_or_default();
            lines.insert(member.subscription, SummaryLine::new(&member, known, &pending, now));
        }
    }
    let mut lanes = repository.scan_lanes();
    while let Some(read) = lanes.next().await {
        let Some(state) = context.if_readable(read)? else { continue };
        let id = state.lane.subscription;
        if let (Some(line), Some(known)) = (lines.get_mut(&id), known.get(id)) {
            line.add(state, known.resumed_at, now);
        }
    }
    let parts = lines.into_values().map(|line| {
        let slot = context.slot(line.summary.id, line.slot);
        (line.summary, slot)
    });
    Ok(parts.unzip())
}

/// A line that is being written.
struct SummaryLine {
    summary: SubscriptionSummary,
    /// How many lanes it has now: those of a former number count for what they did, not for what they do.
    lanes: u16,
    slot: Option<u32>,
}

impl SummaryLine {
    fn new(member: &Member, known: &KnownSubscription, pending: &Pending, now: Timestamp) -> Self {
        let readable = known.unreadable_until.is_none();
        let status = if readable { member.status } else { SubscriptionStatus::Unreadable };
        let mut summary = SubscriptionSummary::new(member.subscription, status);
        summary.resource = known.resource;
        summary.url = known.url.as_deref().map(str::to_owned);
        summary.reason = known.reason.as_deref().map(str::to_owned);
        summary.lag = pending.count;
        summary.oldest_pending = pending.oldest_since.map_or(Duration::ZERO, |since| now - since);
        // A node that cannot read it works no lane of it.
        let lanes = if readable { member.lanes } else { 0 };
        Self { summary, lanes, slot: member.slot }
    }

    /// Adds what one of its lanes remembers.
    fn add(&mut self, state: LaneState, resumed_at: Option<Timestamp>, now: Timestamp) {
        let summary = &mut self.summary;
        let worked = state.lane.shard < self.lanes;
        let health = ClientHealth::stored(state, resumed_at);
        let state = health.state();
        if worked {
            summary.consecutive_failures = summary.consecutive_failures.max(health.failures());
            summary.probing |= health.is_probing();
        }
        summary.last_success_at = summary.last_success_at.max(state.last_success_at);
        if state.last_error.is_some() && state.last_error_at >= summary.last_error_at {
            summary.last_error.clone_from(&state.last_error);
            summary.last_error_at = state.last_error_at;
        }
        let rates = SubscriptionRates::of(state.activity.as_deref().into_iter(), now);
        summary.rates = summary.rates + rates;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Generation, LaneId};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    #[test]
    fn what_lanes_remember_is_one_line() {
        let id = SubscriptionId::from_bytes([1; 16]);
        let member = Member::new(id, Generation::new(1), SubscriptionStatus::Active, 2);
        let known = KnownSubscription::example();
        let mut line = SummaryLine::new(
            &member,
            &known,
            &Pending::new(3, Some(at(70)), Some(at(90))),
            at(100),
        );
        let lane = |shard, failures, error: Option<(&str, i64)>| {
            let mut state = LaneState::new(LaneId::new(id, shard));
            state.consecutive_failures = failures;
            (state.last_error, state.last_error_at) =
                (error.map(|(error, _)| error.to_owned()), error.map(|(_, when)| at(when)));
            state.activity.get_or_insert_default().failed.add(at(90), 30);
            state.updated_at = at(95);
            state
        };
        line.add(lane(0, 2, Some(("older", 80))), None, at(100));
        line.add(lane(1, 6, Some(("newest", 90))), None, at(100));
        line.add(lane(7, 50, Some(("former", 85))), None, at(100));
        let summary = line.summary;
        assert_eq!((summary.lag, summary.oldest_pending), (3, Duration::from_secs(30)));
        assert_eq!(
            (summary.consecutive_failures, summary.last_error.as_deref()),
            (6, Some("newest"))
        );
        assert_eq!(summary.rates.failed.minute, 1.5, "a former lane's count, too, until they fall");
        let mut resumed = SummaryLine::new(&member, &known, &Pending::default(), at(100));
        resumed.add(lane(0, 9, None), Some(at(96)), at(100));
        assert_eq!(resumed.summary.consecutive_failures, 0, "an operator says it is mended");
    }
}
