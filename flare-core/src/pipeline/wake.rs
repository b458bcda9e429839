//! Takes who has something to do; gives them a message that says so. A lost one costs time only:
//! lanes look for themselves now and then.

use std::collections::BTreeMap;

use super::context::Context;
use super::task::Task;
use crate::error::{ErrorKind, Result};
use crate::model::{LaneId, SubscriptionId};
use crate::port::{Outgoing, QueueExt, QueueName};

/// The slot a subscription's lanes belong to.
pub(crate) fn slot_of(subscription: SubscriptionId, slots: u32) -> u32 {
    // The last bytes of an id are random, so they need no further mixing.
    let bytes = subscription.as_bytes();
    let number = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
    number % slots.max(1)
}

impl Context {
    /// Wakes lanes.
    pub(crate) async fn wake(&self, lanes: impl IntoIterator<Item = LaneId>) -> Result<()> {
        let mut by_slot: BTreeMap<u32, Vec<Outgoing>> = BTreeMap::new();
        for lane in lanes {
            let message = Outgoing::new(Task::Wake { lane }.encode()?).coalesce(lane.to_string());
            by_slot.entry(self.slot(lane.subscription)).or_default().push(message);
        }
        for (slot, messages) in by_slot {
            self.announce(&QueueName::Slot(slot), messages).await?;
        }
        Ok(())
    }

    /// Tells whoever works a subscription to read it again.
    pub(crate) async fn refresh(&self, subscription: SubscriptionId) -> Result<()> {
        let message = Outgoing::new(Task::Refresh { subscription }.encode()?)
            .coalesce(format!("refresh {subscription}"));
        self.announce(&QueueName::Slot(self.slot(subscription)), vec![message]).await
    }

    pub(crate) fn slot(&self, subscription: SubscriptionId) -> u32 {
        slot_of(subscription, self.settings.slots)
    }

    /// Sends messages, bringing back a queue that has vanished. The first failure is the answer.
    pub(crate) async fn announce(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Result<()> {
        let again = messages.clone();
        let results = self.queue.send_all(queue, messages).await;
        let missing = |result: &Result<()>| {
            result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        if !results.iter().any(missing) {
            return results.into_iter().collect();
        }
        self.queue.create(queue).await?;
        self.queue.send_all(queue, again).await.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{IdSource, Timestamp};

    #[test]
    fn subscriptions_spread_over_the_slots() {
        let ids = IdSource::seeded(1);
        let mut counts = [0_u32; 16];
        for second in 0..16_000 {
            let id = ids.next(Timestamp::from_unix_seconds(second)).into();
            counts[slot_of(id, 16) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
