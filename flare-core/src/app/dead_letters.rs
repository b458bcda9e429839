//! Takes a subscription; gives what was given up for it, and lets it be tried again.

use std::collections::BTreeSet;

use tracing::warn;

use super::flare::{Flare, not_found};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    AuditAction, AuditSubject, DeadLetterId, DeadNotification, LaneId, Row, Subscription,
    SubscriptionId,
};
use crate::pipeline::stage::chain;
use crate::port::{Listing, Page, Replay};

impl Flare {
    /// Lists the notifications that were given up for a subscription, oldest death first.
    pub async fn dead_letters(
        &self,
        subscription: SubscriptionId,
        page: Page,
    ) -> Result<Listing<DeadNotification>> {
        const OPERATION: &str = "dead_letters";
        let subscription = self.find_subscription(OPERATION, subscription).await?;
        let repository = &self.context().repository;
        let resource = repository.resource(subscription.resource).await?.ok_or_else(|| {
            let detail = format!("subscription {} has no resource", subscription.id);
            Error::new(ErrorKind::Corrupt, OPERATION).with_detail(detail)
        })?;
        let rows = repository.dead_letters(subscription.id, page).await?;
        rows.unreadable.iter().for_each(|it| self.context().note_unreadable(it));
        let shown = |row| DeadNotification::of(row, &resource.change);
        let mut shown = Listing::new(rows.items.iter().filter_map(shown).collect(), rows.total);
        shown.unreadable = rows.unreadable;
        Ok(shown)
    }

    /// Takes notifications off the dead letters and tries them again, with the newest version of
    /// their document; tells how many. If one of them is not listed, none is replayed; an error of
    /// the store may come after some were.
    pub async fn replay(
        &self,
        subscription: SubscriptionId,
        ids: impl IntoIterator<Item = DeadLetterId>,
    ) -> Result<u64> {
        const OPERATION: &str = "replay";
        let subscription = self.find_subscription(OPERATION, subscription).await?;
        let ids: BTreeSet<DeadLetterId> = ids.into_iter().collect();
        let ids: Vec<DeadLetterId> = ids.into_iter().collect();
        let limit = self.context().batch_limit();
        let mut replays = Vec::with_capacity(ids.len());
        for ids in ids.chunks(limit) {
            let repository = &self.context().repository;
            let found = repository.find_dead_letters(subscription.id, ids.to_vec()).await?;
            for (id, row) in ids.iter().zip(found) {
                let replay = row.as_ref().and_then(replay_of);
                replays.push(replay.ok_or_else(|| not_found(OPERATION, "dead letter", id))?);
            }
        }
        let mut replayed = 0;
        for replays in replays.chunks(limit) {
            replayed += self.replay_batch(&subscription, replays.to_vec()).await?;
        }
        self.tell_replayed(subscription.id, replayed);
        Ok(replayed)
    }

    fn tell_replayed(&self, id: SubscriptionId, replayed: u64) {
        if replayed > 0 {
            let detail = format!("{replayed} dead letters");
            self.tell(AuditAction::Replayed, AuditSubject::subscription(id), detail);
        }
    }

    /// Replays everything that is listed now; tells how much. What dies again meanwhile is left.
    pub async fn replay_all(&self, subscription: SubscriptionId) -> Result<u64> {
        let subscription = self.find_subscription("replay_all", subscription).await?;
        let replayed = self.replay_listed(&subscription).await?;
        self.tell_replayed(subscription.id, replayed);
        Ok(replayed)
    }

    async fn replay_listed(&self, subscription: &Subscription) -> Result<u64> {
        let repository = &self.context().repository;
        let limit = u32::try_from(self.context().batch_limit()).unwrap_or(u32::MAX);
        let mut left: Option<u64> = None;
        let (mut passed, mut replayed) = (0, 0);
        loop {
            let listed = repository.dead_letters(subscription.id, Page::new(limit, passed)).await?;
            listed.unreadable.iter().for_each(|it| self.context().note_unreadable(it));
            // Those stay on the list, before all that are looked at next.
            let unreadable = listed.unreadable.len() as u64;
            passed += unreadable;
            // Whatever dies from now on joins at the end of the list.
            let most = left.unwrap_or(listed.total).saturating_sub(unreadable);
            let mut rows = listed.items;
            rows.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            let most = most - rows.len() as u64;
            left = Some(most);
            if !rows.is_empty() {
                let replays: Vec<Replay> = rows.iter().filter_map(replay_of).collect();
                let batch = self.replay_batch(subscription, replays).await?;
                replayed += batch;
                if batch == 0 {
                    // Another call is replaying them, or whatever else: they are not ours to repeat.
                    return Ok(replayed);
                }
            }
            if most == 0 || (rows.is_empty() && unreadable == 0) {
                return Ok(replayed);
            }
        }
    }

    /// Replays as many as a store takes at a time, and wakes their lanes.
    async fn replay_batch(&self, subscription: &Subscription, replays: Vec<Replay>) -> Result<u64> {
        let lanes = subscription.spec.delivery().lanes();
        let lane =
            |replay: &Replay| LaneId::new(subscription.id, replay.key.url.bucket().lane(lanes));
        let lanes: Vec<LaneId> = replays.iter().map(lane).collect();
        let outcomes = self.context().repository.replay_rows(replays).await;
        // Also where the outcome is an error: it may have come after the effect.
        let missed = |outcome: &Result<bool>| matches!(outcome, Ok(false));
        let woken = lanes.into_iter().zip(&outcomes).filter(|(_, outcome)| !missed(outcome));
        let slot = self.context().slot_of(subscription);
        let woken: BTreeSet<(LaneId, u32)> = woken.map(|(lane, _)| (lane, slot)).collect();
        if let Err(error) = self.context().wake(woken).await {
            warn!(error = %chain(&error), "could not wake lanes, they will look for themselves");
        }
        outcomes.into_iter().map(|outcome| outcome.map(u64::from)).sum()
    }
}

fn replay_of(row: &Row) -> Option<Replay> {
    Some(Replay { key: row.key.clone(), version: row.given_up? })
}
