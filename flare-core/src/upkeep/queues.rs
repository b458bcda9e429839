//! Takes any queue and the repository beside it; gives the queues that are missing, and those of
//! lanes that are nobody's. Never looks at messages.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;

use crate::error::{ErrorKind, Result};
use crate::model::{LaneId, SubscriptionId};
use crate::port::{
    Part, Purpose, Queue, QueueName, Repository, Step, StepOutcome, StepProgress, Upkeep,
};

/// Keeps the queues of any backend in order.
///
/// Setup and fixup create the queues between the stages; those of slots come and go with the work,
/// which creates them when it first uses them. Cleanup deletes queues of lanes whose subscription
/// is not stored, or has fewer lanes. Whatever else there is it leaves alone.
#[derive(Debug, Clone)]
pub struct QueueUpkeep {
    backend: &'static str,
    queue: Arc<dyn Queue>,
    repository: Arc<dyn Repository>,
}

/// The queues between the stages, with what each is for.
const STAGES: [(QueueName, &str); 2] = [
    (QueueName::Partition, "changes wait there for their partitions to be found"),
    (QueueName::Spread, "partitions wait there for their rows to be written"),
];

impl QueueUpkeep {
    /// Keeps the queues of the backend of this name, for the subscriptions of `repository`.
    pub fn new(
        backend: &'static str,
        queue: Arc<dyn Queue>,
        repository: Arc<dyn Repository>,
    ) -> Self {
        Self { backend, queue, repository }
    }

    async fn exists(&self, queue: &QueueName) -> Result<bool> {
        match self.queue.depth(queue).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn missing(&self) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        for (queue, reason) in STAGES {
            if !self.exists(&queue).await? {
                steps.push(creation(&queue, reason));
            }
        }
        Ok(steps)
    }

    /// Queues before subscriptions: a subscription is stored before its lanes have queues, so every
    /// queue that is listed and in use has its subscription found.
    async fn left_over(&self) -> Result<Vec<Step>> {
        let mut queues = self.queue.list();
        let mut listed = BTreeSet::new();
        while let Some(queue) = queues.try_next().await? {
            if let QueueName::Lane(lane) = queue {
                listed.insert(lane);
            }
        }
        if listed.is_empty() {
            return Ok(Vec::new());
        }
        let named: BTreeSet<SubscriptionId> =
            listed.iter().map(|lane: &LaneId| lane.subscription).collect();
        let mut stored = HashMap::new();
        let mut subscriptions = self.repository.scan_subscriptions(None);
        while let Some(subscription) = subscriptions.try_next().await? {
            if named.contains(&subscription.id) {
                stored.insert(subscription.id, subscription.spec.delivery().lanes());
            }
        }
        let removals = listed.into_iter();
        Ok(removals.filter_map(|lane| removal(lane, stored.get(&lane.subscription))).collect())
    }

    async fn create(&self, step: &Step) -> Result<StepOutcome> {
        let mut stages = STAGES.into_iter();
        let (queue, _) = stages
            .find(|(queue, reason)| creation(queue, reason).id == step.id)
            .ok_or_else(|| step.refused(self.backend))?;
        if self.exists(&queue).await? {
            return Ok(StepOutcome::NotNeeded);
        }
        self.queue.create(&queue).await?;
        Ok(StepOutcome::Done)
    }

    /// No queue deletes on a condition, so the look at the subscription is the last thing before it.
    /// A lane that begins in between gets its queue back when it first uses it.
    async fn delete(&self, step: &Step) -> Result<StepOutcome> {
        let lane = lane_of(step).ok_or_else(|| step.refused(self.backend))?;
        let queue = QueueName::Lane(lane);
        if !self.exists(&queue).await? {
            return Ok(StepOutcome::NotNeeded);
        }
        let subscription = self.repository.subscription(lane.subscription).await?;
        let lanes = subscription.map(|subscription| subscription.spec.delivery().lanes());
        if removal(lane, lanes.as_ref()).is_none_or(|now| now.id != step.id) {
            return Ok(StepOutcome::NotNeeded);
        }
        self.queue.delete(&queue).await?;
        Ok(StepOutcome::Done)
    }
}

#[async_trait]
impl Upkeep for QueueUpkeep {
    fn part(&self) -> Part {
        Part::Queue
    }

    fn backend(&self) -> &'static str {
        self.backend
    }

    async fn plan(&self, purpose: Purpose) -> Result<Vec<Step>> {
        match purpose {
            Purpose::Setup | Purpose::Fixup => self.missing().await,
            Purpose::Cleanup => self.left_over().await,
        }
    }

    async fn apply(
        &self,
        purpose: Purpose,
        step: &Step,
        _progress: &dyn StepProgress,
    ) -> Result<StepOutcome> {
        match purpose {
            Purpose::Setup | Purpose::Fixup => self.create(step).await,
            Purpose::Cleanup => self.delete(step).await,
        }
    }
}

fn creation(queue: &QueueName, reason: &str) -> Step {
    Step::create(format!("queue {queue}"), reason)
}

/// The step that deletes the lane's queue, unless the lane is one of so many stored `lanes`.
fn removal(lane: LaneId, lanes: Option<&u16>) -> Option<Step> {
    let subject = format!("queue {}", QueueName::Lane(lane));
    match lanes {
        None => {
            let reason = "its subscription does not exist";
            Some(Step::delete(subject, reason).planned_from("no subscription"))
        }
        Some(lanes) if lane.shard >= *lanes => {
            let reason = format!("its subscription has lanes 0 to {}", lanes.saturating_sub(1));
            Some(Step::delete(subject, reason).planned_from(format!("{lanes} lanes")))
        }
        Some(_) => None,
    }
}

/// The lane that a step is about, if it is one that [`removal`] could have made.
fn lane_of(step: &Step) -> Option<LaneId> {
    let (queue, state) = step.id.strip_prefix("delete queue ")?.split_once(", from ")?;
    let lanes = match state {
        "no subscription" => None,
        lanes => Some(lanes.strip_suffix(" lanes")?.parse().ok()?),
    };
    let Ok(QueueName::Lane(lane)) = queue.parse() else { return None };
    removal(lane, lanes.as_ref()).filter(|possible| possible.id == step.id).map(|_| lane)
}
