//! Gives the queue on SQS the queue of a lane for every slot, as placement *isolated* has.

use flare_core::model::{LaneId, SubscriptionId};
use flare_core::port::{Queue, QueueName, Scan};
use flare_testkit::intercept::{Hooks, QueueHooks};
use futures::{StreamExt, TryStreamExt};

/// Whose lanes stand for slots.
const SUBSCRIPTION: SubscriptionId = SubscriptionId::from_bytes([9; 16]);

fn slot_for(queue: QueueName) -> QueueName {
    match queue {
        QueueName::Lane(lane) if lane.subscription == SUBSCRIPTION => {
            QueueName::Slot(lane.shard.into())
        }
        other => other,
    }
}

/// Reaches a lane's queue in place of every slot's.
#[derive(Debug)]
pub(crate) struct Isolated;

impl Hooks for Isolated {}

impl QueueHooks for Isolated {
    fn reached(&self, named: &QueueName) -> QueueName {
        match named {
            QueueName::Slot(slot) => {
                let shard = u16::try_from(*slot).expect("slots of tests are few");
                QueueName::Lane(LaneId::new(SUBSCRIPTION, shard))
            }
            other => other.clone(),
        }
    }

    fn list<'a>(&'a self, inner: &'a dyn Queue) -> Scan<'a, QueueName> {
        inner.list().map_ok(slot_for).boxed()
    }
}
