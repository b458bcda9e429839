//! Messages that say who has something to do, or something to read again. A lost one costs time only:
//! lanes look for themselves now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use tracing::warn;

use super::context::Context;
use super::restore::Made;
use super::stage::chain;
use crate::error::{ErrorKind, Result};
use crate::model::{ConsumerId, LaneId, Placement, Subscription, SubscriptionId};
use crate::ownership::SlotNumbers;
use crate::port::task::{LANES_PER_TASK, Task};
use crate::port::{Outgoing, QueueExt, QueueName};

/// Queues that are told something at the same time: each may be a round trip away.
const AT_A_TIME: usize = 16;

/// A way to all runtimes on the same stores that is faster, or surer, than the slot's queue.
#[async_trait]
pub(crate) trait Announcer: fmt::Debug + Send + Sync {
    /// Has the node that works a subscription read it again.
    async fn announce_change(&self, subscription: SubscriptionId) -> Result<()>;

    /// Has the node that works a consumer read it again.
    async fn announce_consumer(&self, consumer: ConsumerId) -> Result<()>;
}

impl Context {
    /// Wakes lanes, each with its slot, and those of this process that pull from them: all that can be, whatever
    /// fails. The first failure is the answer.
    pub(crate) async fn wake(&self, lanes: impl IntoIterator<Item = (LaneId, u32)>) -> Result<()> {
        let mut by_queue: BTreeMap<QueueName, Vec<LaneId>> = BTreeMap::new();
        for (lane, slot) in lanes {
            self.bells.ring([lane.subscription]);
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

    /// Tells the owner of a subscription's slot, and of the one it has yet to leave, to read it again.
    pub(crate) async fn refresh(&self, changed: &Subscription) -> Result<()> {
        let slots = [Some(self.slot_of(changed)), changed.moving_from].into_iter().flatten();
        self.refresh_in(changed.id, slots).await
    }

    /// Tells the owners of these slots to read a subscription again.
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
        tokio::join!(announced, self.announce_to_all(subscription)).0
    }

    /// Tells all runtimes at once, where there is a way; the queue tells the owner all the same.
    async fn announce_to_all(&self, subscription: SubscriptionId) {
        let Some(announcer) = &self.announcer else { return };
        if let Err(error) = announcer.announce_change(subscription).await {
            warn!(%subscription, error = %chain(&error), "could not tell all nodes of a change");
        }
    }

    /// Tells the owner of a consumer's slot to read it again. It finds it by itself at its next sweep.
    pub(crate) async fn refresh_consumer(&self, consumer: ConsumerId) {
        let Some(announcer) = &self.announcer else { return };
        if let Err(error) = announcer.announce_consumer(consumer).await {
            warn!(%consumer, error = %chain(&error), "could not tell all nodes of a change");
        }
    }

    /// The slots there are to work.
    pub(crate) fn slot_numbers(&self) -> SlotNumbers {
        SlotNumbers::new(self.slots, self.settings.pinned_slots)
    }

    /// The slot of a subscription that has reserved one, or not.
    pub(crate) fn slot(&self, subscription: SubscriptionId, reserved: Option<u32>) -> u32 {
        self.slot_numbers().slot(subscription, reserved)
    }

    pub(crate) fn slot_of(&self, subscription: &Subscription) -> u32 {
        self.slot_numbers().of(subscription)
    }

    /// How many slots there are to work.
    pub(crate) fn all_slots(&self) -> u32 {
        self.slot_numbers().all()
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
