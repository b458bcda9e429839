//! Takes a subscription; gives how it is doing, from what the stores know: the same answer from
//! every handle, at a cost that grows with the lag alone.

use std::time::Duration;

use super::flare::Flare;
use crate::error::Result;
use crate::model::subscription::Mode;
use crate::model::{
    JobKind, LaneId, LaneState, RecentOutcomes, Row, Subscription, SubscriptionId,
    SubscriptionRates, SubscriptionReport, SubscriptionStatus, SubscriptionTimes, Timestamp,
    Unreadable,
};
use crate::pipeline::health::ClientHealth;
use crate::pipeline::jobs::backfill;
use crate::port::{Page, Pending, PendingQuery};

impl Flare {
    /// How a subscription is doing: how far behind its client is, and what became of the attempts.
    pub async fn subscription_status(&self, id: SubscriptionId) -> Result<SubscriptionReport> {
        const OPERATION: &str = "subscription_status";
        let subscription = match self.look_up(OPERATION, id).await? {
            Ok(subscription) => subscription,
            Err(unreadable) => return self.status_of_unreadable(id, &unreadable).await,
        };
        let context = self.context();
        let repository = &context.repository;
        // First of all: what is spread in between is seen as pending, not missed.
        let spreading = repository.count_undispatched(Some(subscription.resource)).await?;
        let pending = repository.count_pending(Some(subscription.id)).await?;
        let lanes = repository.lanes(subscription.id).await?.items;
        let dead_letters = repository.dead_letters(subscription.id, Page::new(1, 0)).await?.total;
        let queue =
            context.queue_of(LaneId::new(subscription.id, 0), context.slot_of(&subscription));
        let mut counted = Counted { spreading, pending, dead_letters };
        if subscription.spec.mode() == Mode::Passive {
            // Nothing is sent by itself, but what was demanded.
            counted.pending.next_due = self.next_demanded(subscription.id).await?;
        }
        let facts = StatusFacts::of(&subscription);
        let mut report = report(&facts, &counted, &lanes, queue.to_string(), context.time().await?);
        // The node that works the slot now may not have stored anything of the lane yet.
        let worker = self.cluster_seen().await.worker(context.slot_of(&subscription));
        report.node = worker.map(|node| node.to_string());
        report.backfill = backfill::progress(context, JobKind::Backfill, id).await?;
        report.resync = backfill::progress(context, JobKind::Resync, id).await?;
        Ok(report)
    }

    /// When the first of what was demanded is due.
    async fn next_demanded(&self, id: SubscriptionId) -> Result<Option<Timestamp>> {
        let context = self.context();
        let query = PendingQuery::new(id, 1).demanded(true);
        let rows = context.all_readable(context.repository.pending_rows(query)).await?;
        Ok(rows.first().map(|row: &Row| row.due))
    }

    /// How one is doing that cannot be read: what waits for it can be counted all the same.
    async fn status_of_unreadable(
        &self,
        id: SubscriptionId,
        unreadable: &Unreadable,
    ) -> Result<SubscriptionReport> {
        let context = self.context();
        let repository = &context.repository;
        let spreading = match unreadable.resource {
            Some(resource) => repository.count_undispatched(Some(resource)).await?,
            None => 0,
        };
        let pending = repository.count_pending(Some(id)).await?;
        let lanes = repository.lanes(id).await?.items;
        let dead_letters = repository.dead_letters(id, Page::new(1, 0)).await?.total;
        let counted = Counted { spreading, pending, dead_letters };
        let queue = context.queue_of(LaneId::new(id, 0), context.slot(id, None));
        let status = SubscriptionStatus::Unreadable;
        let reason = Some(unreadable.why.to_string());
        let facts = StatusFacts { status, reason, shards: 0, resumed_at: None };
        Ok(report(&facts, &counted, &lanes, queue.to_string(), context.time().await?))
    }
}

/// What a report says of a subscription, readable or not.
struct StatusFacts {
    status: SubscriptionStatus,
    reason: Option<String>,
    /// Lanes of a former number of shards count for what they did, not for what they do.
    shards: u16,
    resumed_at: Option<Timestamp>,
}

impl StatusFacts {
    fn of(subscription: &Subscription) -> Self {
        Self {
            status: subscription.status,
            reason: subscription.reason.clone(),
            shards: subscription.spec.delivery().lanes(),
            resumed_at: subscription.resumed_at,
        }
    }
}

/// What the stores counted.
struct Counted {
    spreading: u64,
    pending: Pending,
    dead_letters: u64,
}

fn report(
    facts: &StatusFacts,
    counted: &Counted,
    lanes: &[LaneState],
    queue: String,
    now: Timestamp,
) -> SubscriptionReport {
    let Counted { spreading, pending, dead_letters } = counted;
    let worked = || lanes.iter().filter(|state| state.lane.shard < facts.shards);
    let sum = |count: fn(&LaneState) -> u64| lanes.iter().map(count).sum();
    let activity = || lanes.iter().filter_map(|state| state.activity.as_deref());
    let failed = lanes.iter().filter(|state| state.last_error.is_some());
    let failed = failed.max_by_key(|state| state.last_error_at);
    let health = |state: &LaneState| ClientHealth::stored(state.clone(), facts.resumed_at);
    let failures = |state: &LaneState| health(state).failures();
    SubscriptionReport {
        status: facts.status,
        reason: facts.reason.clone(),
        lag: pending.count,
        spreading: *spreading,
        oldest_pending: pending.oldest_since.map_or(Duration::ZERO, |since| now - since),
        in_flight: worked().map(|state| u64::from(state.in_flight)).sum(),
        delivered: sum(|state| state.delivered),
        failed: sum(|state| state.failed),
        discarded: sum(|state| state.discarded),
        rates: SubscriptionRates::of(activity(), now),
        recent: RecentOutcomes::of(activity(), now),
        times: SubscriptionTimes::of(activity(), now),
        dead_letters: *dead_letters,
        last_success_at: lanes.iter().filter_map(|state| state.last_success_at).max(),
        last_error: failed.and_then(|state| state.last_error.clone()),
        last_error_at: failed.and_then(|state| state.last_error_at),
        probing: worked().any(|state| health(state).is_probing()),
        consecutive_failures: worked().map(failures).max().unwrap_or_default(),
        // What is due already goes as soon as it can.
        next_attempt_at: next_attempt(facts, pending, worked()).map(|at| at.max(now)),
        node: worked()
            .max_by_key(|state| (state.epoch, state.updated_at))
            .and_then(|state| state.node.clone()),
        queue,
        queue_restored_at: worked().filter_map(|state| state.queue_restored_at).max(),
        backfill: None,
        resync: None,
    }
}

/// When the first of what is pending is due, or later if the client asked for that or is only
/// probed. Nothing is sent for a subscription that is not active.
fn next_attempt<'a>(
    facts: &StatusFacts,
    pending: &Pending,
    lanes: impl Iterator<Item = &'a LaneState> + Clone,
) -> Option<Timestamp> {
    let active = facts.status == SubscriptionStatus::Active;
    let due = pending.next_due.filter(|_| active)?;
    let held_until = lanes.clone().filter_map(|state| state.hold_until).max();
    // One lane that is not probed need not wait, so the least of them counts.
    let health = |state: &LaneState| ClientHealth::stored(state.clone(), facts.resumed_at);
    let probe_at = lanes.map(|state| health(state).probe_at()).min().flatten();
    Some(due).max(held_until).max(probe_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Epoch, ResourceId, SubscriptionSpec};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn subscription(status: SubscriptionStatus) -> Subscription {
        let spec = SubscriptionSpec::post("http://c.example/").lanes(2).build().unwrap();
        let (id, resource) = (SubscriptionId::from_bytes([1; 16]), ResourceId::from_bytes([2; 16]));
        let mut subscription = Subscription::new(id, resource, spec, at(0));
        subscription.status = status;
        subscription
    }

    fn lane(shard: u16) -> LaneState {
        LaneState::new(LaneId::new(SubscriptionId::from_bytes([1; 16]), shard))
    }

    fn reported(status: SubscriptionStatus, lanes: &[LaneState]) -> SubscriptionReport {
        let counted = Counted {
            spreading: 4,
            pending: Pending::new(3, Some(at(70)), Some(at(90))),
            dead_letters: 5,
        };
        let facts = StatusFacts::of(&subscription(status));
        report(&facts, &counted, lanes, "slot-1".to_owned(), at(100))
    }

    #[test]
    fn counters_of_all_lanes_are_summed_and_times_are_the_latest() {
        let [mut a, mut b, mut former] = [lane(0), lane(1), lane(7)];
        (a.delivered, b.delivered, former.delivered) = (10, 20, 30);
        (a.failed, b.failed, former.failed) = (1, 2, 3);
        (a.discarded, b.discarded) = (7, 0);
        (a.in_flight, b.in_flight, former.in_flight) = (1, 2, 9);
        (a.last_success_at, b.last_success_at) = (Some(at(50)), Some(at(60)));
        (a.last_error_at, a.last_error) = (Some(at(40)), Some("a".to_owned()));
        (b.last_error_at, b.last_error) = (Some(at(30)), Some("b".to_owned()));
        (a.consecutive_failures, b.consecutive_failures) = (3, 6);
        (b.failures_in_a_row, former.consecutive_failures) = (5, 9);
        (a.epoch, a.node) = (Epoch::new(2), Some("newer".to_owned()));
        (b.epoch, b.node) = (Epoch::new(1), Some("older".to_owned()));
        (former.epoch, former.node) = (Epoch::new(9), Some("former".to_owned()));
        (a.queue_restored_at, former.queue_restored_at) = (Some(at(20)), Some(at(99)));
        let report = reported(SubscriptionStatus::Active, &[a, b, former]);
        assert_eq!((report.delivered, report.failed, report.discarded), (60, 6, 7));
        assert_eq!(report.in_flight, 3, "a former lane has nothing in flight");
        assert_eq!(report.last_success_at, Some(at(60)));
        assert_eq!(report.last_error.as_deref(), Some("a"));
        assert_eq!(report.last_error_at, Some(at(40)));
        assert_eq!((report.probing, report.consecutive_failures), (true, 6));
        assert_eq!(report.node.as_deref(), Some("newer"));
        assert_eq!(report.queue_restored_at, Some(at(20)), "a former lane's queue does not count");
        assert_eq!((report.lag, report.spreading, report.dead_letters), (3, 4, 5));
        assert_eq!(report.oldest_pending, Duration::from_secs(30));
    }

    #[test]
    fn the_next_attempt_waits_for_what_the_client_asked() {
        let [mut a, mut b] = [lane(0), lane(1)];
        let next = |a: &LaneState, b: &LaneState| {
            reported(SubscriptionStatus::Active, &[a.clone(), b.clone()]).next_attempt_at
        };
        assert_eq!(next(&a, &b), Some(at(100)), "what is due goes now");
        a.hold_until = Some(at(80));
        assert_eq!(next(&a, &b), Some(at(100)), "and is never in the past");
        b.hold_until = Some(at(200));
        assert_eq!(next(&a, &b), Some(at(200)));
        (a.failures_in_a_row, a.last_error_at) = (5, Some(at(300)));
        assert_eq!(next(&a, &b), Some(at(200)), "the other lane is not probed");
        (b.failures_in_a_row, b.last_error_at) = (7, Some(at(300)));
        assert_eq!(next(&a, &b), Some(at(301)));
        for status in [
            SubscriptionStatus::Preparing,
            SubscriptionStatus::Paused,
            SubscriptionStatus::Suspended,
        ] {
            assert_eq!(reported(status, &[]).next_attempt_at, None, "{status}");
        }
    }
}
