//! Takes the queue on SQS; gives it with the queue of a lane for every slot, as placement *isolated* has.

use std::time::Duration;

use async_trait::async_trait;
use flare_backend_sqs::SqsQueue;
use flare_core::Result;
use flare_core::model::{LaneId, SubscriptionId};
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use futures::{StreamExt, TryStreamExt};

/// Whose lanes stand for slots.
const SUBSCRIPTION: SubscriptionId = SubscriptionId::from_bytes([9; 16]);

/// A lane's queue for every slot's.
#[derive(Debug)]
pub(crate) struct Isolated(pub(crate) SqsQueue);

fn lane_for(queue: &QueueName) -> QueueName {
    match queue {
        QueueName::Slot(slot) => {
            let shard = u16::try_from(*slot).expect("slots of tests are few");
            QueueName::Lane(LaneId::new(SUBSCRIPTION, shard))
        }
        other => other.clone(),
    }
}

fn slot_for(queue: QueueName) -> QueueName {
    match queue {
        QueueName::Lane(lane) if lane.subscription == SUBSCRIPTION => {
            QueueName::Slot(lane.shard.into())
        }
        other => other,
    }
}

#[async_trait]
impl Queue for Isolated {
    fn facts(&self) -> QueueFacts {
        self.0.facts()
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        self.0.create(&lane_for(queue)).await
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        self.0.delete(&lane_for(queue)).await
    }

    fn list(&self) -> Scan<'_, QueueName> {
        self.0.list().map_ok(slot_for).boxed()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        self.0.depth(&lane_for(queue)).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        self.0.send(&lane_for(queue), messages).await
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        self.0.receive(&lane_for(queue), request).await
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.0.extend(&lane_for(queue), receipts, visibility).await
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        self.0.settle(&lane_for(queue), settlements).await
    }
}
