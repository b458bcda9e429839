//! Takes who has something to do; gives them a message that says so. A lost one costs time only:
//! lanes look for themselves now and then.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use tracing::warn;

use super::context::Context;
use super::restore::Made;
use super::stage::chain;
use super::task::{LANES_PER_TASK, Task};
use crate::error::{ErrorKind, Result};
use crate::model::{LaneId, Placement, SlotHash, Subscription, SubscriptionId};
use crate::port::{Outgoing, QueueExt, QueueName};

/// Queues that are told something at the same time: each may be a round trip away.
const AT_A_TIME: usize = 16;

impl Context {
    /// Wakes lanes, each with its slot: all that can be, whatever fails. The first failure is the
    /// answer.
    pub(crate) async fn wake(&self, lanes: impl IntoIterator<Item = (LaneId, u32)>) -> Result<()> {
        let mut by_queue: BTreeMap<QueueName, Vec<LaneId>> = BTreeMap::new();
        for (lane, slot) in lanes {
            by_queue.entry(self.queue_of(lane, slot)).or_default().push(lane);
        }
        let announced = stream::iter(by_queue).map(|(queue, lanes)| async move {
            let messages = self.wake_ups(&lanes)?;
            self.announce(&queue, messages).await
        });
        let mut announced = announced.buffer_unordered(AT_A_TIME);
        let mut outcome = Ok(());
        while let Some(one) = announced.next().await {
            outcome = outcome.and(one);
        }
        outcome
    }

    /// A message per lane where those that wait absorb others, else as few as possible.
    fn wake_ups(&self, lanes: &[LaneId]) -> Result<Vec<Outgoing>> {
        let coalesces = self.queue.facts().coalesces;
        let lanes = lanes.chunks(if coalesces { 1 } else { LANES_PER_TASK });
        let message = |lanes: &[LaneId]| {
            let message = Outgoing::new(Task::Wake { lanes: lanes.to_vec() }.encode()?);
            Ok(match lanes {
                [lane] => message.coalesce(lane.to_string()).group(lane.to_string()),
                _ => message,
            })
        };
        lanes.map(message).collect()
    }

    /// Where the wake-ups of a lane in a slot wait.
    pub(crate) fn queue_of(&self, lane: LaneId, slot: u32) -> QueueName {
        match self.settings.placement {
            Placement::Shared => QueueName::Slot(slot),
            Placement::Isolated => QueueName::Lane(lane),
        }
    }

    /// Tells whoever works a subscription, or is going to, to read it again.
    pub(crate) async fn refresh(&self, changed: &Subscription) -> Result<()> {
        let slots = [Some(self.slot_of(changed)), changed.moving_from].into_iter().flatten();
        self.refresh_in(changed.id, slots).await
    }

    /// Tells whoever works these slots to read a subscription again.
    pub(crate) async fn refresh_in(
        &self,
        subscription: SubscriptionId,
        slots: impl IntoIterator<Item = u32>,
    ) -> Result<()> {
        let message = Outgoing::new(Task::Refresh { subscription }.encode()?)
            .coalesce(format!("refresh {subscription}"));
        let slots: BTreeSet<u32> = slots.into_iter().collect();
        let announced = async {
            let mut outcome = Ok(());
            for slot in slots {
                let queue = QueueName::Slot(slot);
                outcome = outcome.and(self.announce(&queue, vec![message.clone()]).await);
            }
            outcome
        };
        tokio::join!(announced, self.proclaim(subscription)).0
    }

    /// Tells all runtimes at once, where there is a way; the queue tells the owner all the same.
    async fn proclaim(&self, subscription: SubscriptionId) {
        let Some(herald) = &self.herald else { return };
        if let Err(error) = herald.tell(subscription).await {
            warn!(%subscription, error = %chain(&error), "could not tell all nodes of a change");
        }
    }

    /// The slot a subscription's lanes belong to: the one that is reserved for them, or the one they
    /// are hashed onto.
    pub(crate) fn slot(&self, subscription: SubscriptionId, pinned: Option<u32>) -> u32 {
        // A number from other settings reserves nothing.
        let pinned = pinned.filter(|slot| (self.slots..self.all_slots()).contains(slot));
        pinned.unwrap_or_else(|| SlotHash::of(subscription).slot(self.slots))
    }

    pub(crate) fn slot_of(&self, subscription: &Subscription) -> u32 {
        self.slot(subscription.id, subscription.slot)
    }

    /// How many slots there are to work: those that lanes are hashed onto, then the reserved ones.
    pub(crate) fn all_slots(&self) -> u32 {
        self.slots.saturating_add(self.settings.pinned_slots)
    }

    /// Sends messages, bringing back a queue that has vanished. The first failure is the answer.
    pub(crate) async fn announce(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Result<()> {
        let again = messages.clone();
        let asked = self.clock.monotonic();
        let results = self.queue.send_all(queue, messages).await;
        let missing = |result: &Result<()>| {
            result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        if !results.iter().any(missing) {
            let sent: Result<()> = results.into_iter().collect();
            return sent.inspect(|()| self.restorer.saw(queue));
        }
        if self.restore(queue, asked).await? == Made::NotNeeded {
            return Ok(());
        }
        self.queue.send_all(queue, again).await.into_iter().collect()
    }
}
