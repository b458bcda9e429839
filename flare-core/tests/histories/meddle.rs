//! Takes a history; lets somebody pause, resume, replace and delete its subscriptions and replay
//! their dead letters, and notes what has to hold from then on.

use std::time::Duration;

use flare_core::ErrorKind;
use flare_core::model::{DocumentUrl, RowKey, SubscriptionId, SubscriptionStatus};
use flare_core::port::{Page, QueueName, RowStore, SubscriptionStore};

use futures::StreamExt;

use crate::client::Versions;
use crate::history::History;
use crate::plan::{EXPIRE_EVERY, TASK_LIFETIME};
use crate::runs::Runs;

/// Tries of something that cannot fail any more.
const TRIES: u32 = 3;

impl History {
    /// Does something to one of the subscriptions.
    pub(crate) async fn meddle(&mut self) {
        let ids: Vec<SubscriptionId> = self.subscriptions.keys().copied().collect();
        let Some(id) = self.random.choice(ids) else { return };
        match self.random.u8(..if Runs::MANY { 10 } else { 8 }) {
            8 => self.pin(id).await,
            9 => self.unpin(id).await,
            0 | 1 => self.pause(id).await,
            2 | 3 => self.resume(id).await,
            4 | 5 => self.replace(id).await,
            6 => self.replay(id).await,
            _ => self.delete_subscription(id).await,
        }
    }

    async fn pause(&mut self, id: SubscriptionId) {
        let flare = self.flare.clone();
        let paused = self.in_time(flare.pause(id)).await;
        self.note(format_args!("pause {id}: {:?}", paused.as_ref().map(|it| it.status)));
        if paused.is_ok() {
            self.clients.hold(id, self.seen_by(id).await);
        }
    }

    /// What its resource stores.
    async fn seen_by(&self, id: SubscriptionId) -> Versions {
        match self.subscriptions.get(&id) {
            Some(known) => self.documents_of(known.resource).await,
            None => self.documents().await,
        }
    }

    async fn resume(&mut self, id: SubscriptionId) {
        // From the moment it is asked for it may happen.
        self.clients.release(id);
        let flare = self.flare.clone();
        let resumed = self.in_time(flare.resume(id)).await;
        self.note(format_args!("resume {id}: {:?}", resumed.as_ref().map(|it| it.status)));
    }

    pub(crate) async fn replace(&mut self, id: SubscriptionId) {
        let lanes = self.random.u32(1..4);
        let Some(known) = self.subscriptions.get_mut(&id) else { return };
        known.replacements += 1;
        let (number, replacement) = (known.number, known.replacements);
        let spec = self.plan.subscription(number, replacement, lanes);
        let (spec, wish) = self.wished(spec, number, replacement);
        self.clients.may_be_replaced(id, wish.wanted, wish.interval);
        // From the moment it is asked for it may happen.
        match wish.passive {
            true => self.clients.leaves_its_lanes(id),
            false => self.clients.may_be_sent(id),
        }
        let flare = self.flare.clone();
        let replaced = self.in_time(flare.replace_subscription(id, spec)).await;
        self.note(format_args!(
            "replace {id} with {lanes} lanes, {wish:?}: {:?}",
            replaced.as_ref().err()
        ));
        // Becoming one that asks for what waits, or ceasing to be one, hands its lanes over.
        if self.wishes.is_some() {
            self.clients.may_be_handed_over();
        }
        if replaced.is_ok() {
            let seen = self.seen_by(id).await;
            if wish.passive {
                self.clients.became_passive(id, seen.clone());
            }
            self.clients.certainly_wants(id, wish.wanted, seen.clone());
            self.clients.replaced(id, replacement, seen);
        }
    }

    async fn pin(&mut self, id: SubscriptionId) {
        let flare = self.flare.clone();
        let pinned = self.in_time(flare.pin(id)).await;
        self.note(format_args!("pin {id}: {pinned:?}"));
    }

    async fn unpin(&mut self, id: SubscriptionId) {
        let flare = self.flare.clone();
        let unpinned = self.in_time(flare.unpin(id)).await;
        self.note(format_args!("unpin {id}: {unpinned:?}"));
    }

    async fn replay(&mut self, id: SubscriptionId) {
        let flare = self.flare.clone();
        let replayed = self.in_time(flare.replay_all(id)).await;
        self.note(format_args!("replay {id}: {replayed:?}"));
    }

    async fn delete_subscription(&mut self, id: SubscriptionId) {
        self.clients.may_be_deleted(id);
        let flare = self.flare.clone();
        let deleted = self.in_time(flare.delete_subscription(id)).await;
        self.note(format_args!("delete {id}: {deleted:?}"));
        // Whether or not it happened: somebody wants it.
        let seen = self.seen_by(id).await;
        self.subscriptions.remove(&id);
        self.deleted.insert(id);
        if deleted.is_ok() {
            self.clients.hold(id, seen);
        }
    }

    /// Whoever meddled finishes what failed, and lets everything go on.
    pub(crate) async fn put_right(&mut self) {
        let deleted: Vec<SubscriptionId> = self.deleted.iter().copied().collect();
        for id in deleted {
            match self.in_time(self.flare.delete_subscription(id)).await {
                Ok(()) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
            }
        }
        // Some were created though nobody was told so.
        let all: Vec<_> = self.memory.repository().scan_subscriptions(None).collect().await;
        for subscription in all.into_iter().map(Result::unwrap) {
            if subscription.status != SubscriptionStatus::Deleting {
                self.clients.release(subscription.id);
                self.in_time(self.flare.resume(subscription.id)).await.unwrap();
            }
        }
    }

    /// Every dead letter is listed, and gone from the list once it is replayed.
    pub(crate) async fn replay_everything(&mut self) {
        let ids: Vec<SubscriptionId> = self.subscriptions.keys().copied().collect();
        for id in ids {
            let listed = self.flare.dead_letters(id, Page::new(1_000, 0)).await.unwrap();
            assert_eq!(listed.total, listed.items.len() as u64, "history {}", self.seed);
            let replayed = self.in_time(self.flare.replay_all(id)).await.unwrap();
            assert_eq!(replayed, listed.total, "history {}: P8", self.seed);
            let left = self.flare.dead_letters(id, Page::new(1, 0)).await.unwrap();
            assert_eq!(left.total, 0, "history {}: P8", self.seed);
        }
    }

    /// What was deleted leaves nothing behind.
    pub(crate) async fn check_deleted(&self) {
        if self.deleted.is_empty() {
            return;
        }
        let store = self.memory.repository();
        let documents = self.documents().await;
        for id in &self.deleted {
            for _ in 0..TRIES {
                if store.subscription(*id).await.unwrap().is_none() {
                    break;
                }
                self.pass(TASK_LIFETIME + Duration::from_secs(30)).await;
            }
            let seed = self.seed;
            let left = store.subscription(*id).await.unwrap();
            assert!(left.is_none(), "history {seed}: {left:?} is not removed");
            let key = |url: &String| RowKey::new(*id, DocumentUrl::parse(url).unwrap());
            let rows = store.rows(documents.keys().map(key).collect()).await.unwrap();
            assert!(rows.iter().all(Option::is_none), "history {seed}: rows of {id}: {rows:?}");
            assert!(
                store.lanes(*id).await.unwrap().items.is_empty(),
                "history {seed}: lanes of {id}"
            );
            if !self.queues_of(*id).await.is_empty() {
                // A worker that made one and died before it looked leaves it to expiry.
                self.pass(EXPIRE_EVERY + 3 * TASK_LIFETIME).await;
            }
            let queues = self.queues_of(*id).await;
            assert!(queues.is_empty(), "history {seed}: queues of {id}: {queues:?}");
        }
    }

    async fn queues_of(&self, id: SubscriptionId) -> Vec<QueueName> {
        let mut queues = self.queues().await;
        queues.retain(|it| matches!(it, QueueName::Lane(lane) if lane.subscription == id));
        queues
    }
}
