//! Takes any queue and the repository beside it; gives the queues that are missing, and those that
//! belong to nothing. Never looks at messages.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};

use crate::error::{ErrorKind, Result};
use crate::model::{
    LaneId, Placement, RecordName, Subscription, SubscriptionId, SubscriptionStatus,
};
use crate::port::{
    Part, Purpose, Queue, QueueName, Repository, Step, StepOutcome, StepProgress, Upkeep, no_backup,
};

/// Keeps the queues of any backend in order.
///
/// Setup and fixup create the queues between the stages. Cleanup deletes queues of lanes whose
/// subscription is not stored, or has fewer lanes. Whatever else there is it leaves alone: those of
/// slots come with the work, which creates them when it first uses them.
///
/// Where queues cost something or take long to make, [`placed`](Self::placed) tells it which ones the
/// settings call for: then setup and fixup create those of slots and isolated lanes as well, and
/// cleanup deletes what belongs to another placement or number of slots. So a change of placement is:
/// change the setting, set up, restart, clean up.
#[derive(Debug, Clone)]
pub struct QueueUpkeep {
    backend: &'static str,
    queue: Arc<dyn Queue>,
    repository: Arc<dyn Repository>,
    layout: Option<QueueLayout>,
}

/// Which queues the settings call for.
#[derive(Debug, Clone, Copy)]
struct QueueLayout {
    placement: Placement,
    slots: u32,
    /// Slots beside those whose queues may be there, each once a subscription has it.
    reserved: u32,
}

const PARTITION: &str = "changes wait there for their partitions to be found";
const SPREAD: &str = "partitions wait there for their rows to be written";
const SLOT: &str = "wake-ups and changed settings of the slot's lanes wait there";
const LANE: &str = "wake-ups of the lane wait there";

/// A subscription that cannot be read may have any number of lanes, so all of its queues are needed.
const ANY_LANES: u16 = u16::MAX;

impl QueueUpkeep {
    /// Keeps the queues of the backend of this name, for the subscriptions of `repository`.
    pub fn new(
        backend: &'static str,
        queue: Arc<dyn Queue>,
        repository: Arc<dyn Repository>,
    ) -> Self {
        Self { backend, queue, repository, layout: None }
    }

    /// The same, with the queues that lanes need by this placement and number of slots, which must
    /// be those of the runtimes' settings.
    #[must_use]
    pub fn placed(mut self, placement: Placement, slots: u32) -> Self {
        self.layout = Some(QueueLayout { placement, slots, reserved: 0 });
        self
    }

    /// The same, where so many more slots are reserved for single subscriptions
    /// ([`Settings::pinned_slots`](crate::pipeline::Settings::pinned_slots)): their queues are made when
    /// a subscription has them, and belong to nothing only beyond that number.
    #[must_use]
    pub fn reserving(mut self, slots: u32) -> Self {
        if let Some(layout) = &mut self.layout {
            layout.reserved = slots;
        }
        self
    }

    async fn exists(&self, queue: &QueueName) -> Result<bool> {
        match self.queue.depth(queue).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All queues there are.
    async fn listed(&self) -> Result<BTreeSet<QueueName>> {
        self.queue.list().try_collect().await
    }

    /// The queues there have to be, with what each is for.
    async fn needed(&self) -> Result<BTreeMap<QueueName, &'static str>> {
        let stages = [(QueueName::Partition, PARTITION), (QueueName::Spread, SPREAD)];
        let mut needed = BTreeMap::from(stages);
        let Some(QueueLayout { placement, slots, .. }) = self.layout else { return Ok(needed) };
        needed.extend((0..slots).map(|slot| (QueueName::Slot(slot), SLOT)));
        if placement == Placement::Isolated {
            let mut subscriptions = self.repository.scan_subscriptions(None);
            while let Some(read) = subscriptions.next().await {
                match read {
                    Ok(it) => needed.extend(lanes(&it).map(|it| (QueueName::Lane(it), LANE))),
                    // How many lanes it has is not known here; a lane makes what it misses.
                    Err(error) if error.unreadable().is_some() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(needed)
    }

    async fn missing(&self) -> Result<Vec<Step>> {
        let listed = self.listed().await?;
        let needed = self.needed().await?.into_iter();
        let missing = needed.filter(|(queue, _)| !listed.contains(queue));
        Ok(missing.map(|(queue, reason)| creation(&queue, reason)).collect())
    }

    /// Whether a queue has to be there; `None` if it never has to.
    async fn needs(&self, queue: &QueueName) -> Result<Option<bool>> {
        Ok(match (queue, self.layout) {
            (QueueName::Partition | QueueName::Spread, _) => Some(true),
            (QueueName::Slot(slot), Some(layout)) if *slot < layout.slots => Some(true),
            (QueueName::Lane(lane), Some(QueueLayout { placement: Placement::Isolated, .. })) => {
                match self.repository.subscription(lane.subscription).await {
                    Ok(found) => {
                        Some(found.is_some_and(|found| lanes(&found).any(|its| its == *lane)))
                    }
                    Err(error) if error.unreadable().is_some() => Some(false),
                    Err(error) => return Err(error),
                }
            }
            _ => None,
        })
    }

    async fn create(&self, step: &Step) -> Result<StepOutcome> {
        let queue = step.id.strip_prefix("create queue ").and_then(|queue| queue.parse().ok());
        let refused = || step.refused(self.backend);
        let queue = queue.ok_or_else(refused)?;
        if !self.needs(&queue).await?.ok_or_else(refused)? || self.exists(&queue).await? {
            return Ok(StepOutcome::NotNeeded);
        }
        self.queue.create(&queue).await?;
        Ok(StepOutcome::Done)
    }

    /// Queues before subscriptions: a subscription is stored before its lanes have queues, so every
    /// queue that is listed and in use has its subscription found.
    async fn left_over(&self) -> Result<Vec<Step>> {
        let listed = self.listed().await?;
        let of_lane = |queue: &QueueName| match queue {
            QueueName::Lane(lane) => Some(lane.subscription),
            _ => None,
        };
        let named: BTreeSet<SubscriptionId> = listed.iter().filter_map(of_lane).collect();
        let mut stored = HashMap::new();
        if !named.is_empty() {
            let mut subscriptions = self.repository.scan_subscriptions(None);
            while let Some(read) = subscriptions.next().await {
                let (id, lanes) = match read {
                    Ok(it) => (it.id, it.spec.delivery().lanes()),
                    Err(error) => match error.unreadable().map(|it| &it.record) {
                        Some(RecordName::Subscription(id)) => (*id, ANY_LANES),
                        Some(_) => continue,
                        None => return Err(error),
                    },
                };
                if named.contains(&id) {
                    stored.insert(id, lanes);
                }
            }
        }
        let lanes = |queue: &QueueName| of_lane(queue).and_then(|id| stored.get(&id).copied());
        Ok(listed.iter().filter_map(|queue| self.removal(queue, lanes(queue))).collect())
    }

    /// The step that deletes a queue, unless it is needed; `lanes` are those of its subscription.
    fn removal(&self, queue: &QueueName, lanes: Option<u16>) -> Option<Step> {
        let state = match (queue, self.layout) {
            (QueueName::Slot(_), Some(layout)) => {
                QueueState::Slots(layout.slots.saturating_add(layout.reserved))
            }
            (QueueName::Lane(_), Some(QueueLayout { placement: Placement::Shared, .. })) => {
                QueueState::Shared
            }
            (QueueName::Lane(_), _) => QueueState::Lanes(lanes),
            _ => return None,
        };
        state.removal(queue)
    }

    /// No queue deletes on a condition, so the look at the subscription is the last thing before it.
    /// A lane that begins in between gets its queue back when it first uses it.
    async fn delete(&self, step: &Step) -> Result<StepOutcome> {
        let queue = left_over_by(step).ok_or_else(|| step.refused(self.backend))?;
        if !self.exists(&queue).await? {
            return Ok(StepOutcome::NotNeeded);
        }
        let lanes = match &queue {
            QueueName::Lane(lane) => match self.repository.subscription(lane.subscription).await {
                Ok(found) => found.map(|found| found.spec.delivery().lanes()),
                Err(error) if error.unreadable().is_some() => Some(ANY_LANES),
                Err(error) => return Err(error),
            },
            _ => None,
        };
        if self.removal(&queue, lanes).is_none_or(|now| now.id != step.id) {
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

    async fn backup(&self, _to: &Path, _progress: &dyn StepProgress) -> Result<()> {
        Err(no_backup(
            self.backend,
            "queues only wake: what is to be done follows from the repository, which is worth a copy",
        ))
    }
}

/// The lanes of a subscription that have to be woken.
fn lanes(subscription: &Subscription) -> impl Iterator<Item = LaneId> + use<> {
    let id = subscription.id;
    let lanes = match subscription.status {
        SubscriptionStatus::Deleting => 0,
        _ => subscription.spec.delivery().lanes(),
    };
    (0..lanes).map(move |shard| LaneId::new(id, shard))
}

fn creation(queue: &QueueName, reason: &str) -> Step {
    Step::create(format!("queue {queue}"), reason)
}

/// What makes a queue belong to nothing.
#[derive(Debug, Clone, Copy)]
enum QueueState {
    /// How many lanes its subscription has, if there is one.
    Lanes(Option<u16>),
    /// Lanes share the queues of their slots.
    Shared,
    /// How many slots there are.
    Slots(u32),
}

impl QueueState {
    /// The step that deletes the queue, if this is so.
    fn removal(self, queue: &QueueName) -> Option<Step> {
        let (reason, state) = match (self, queue) {
            (Self::Lanes(None), QueueName::Lane(_)) => {
                ("its subscription does not exist".to_owned(), "no subscription".to_owned())
            }
            (Self::Lanes(Some(lanes)), QueueName::Lane(lane)) if lane.shard >= lanes => {
                let last = lanes.saturating_sub(1);
                (format!("its subscription has lanes 0 to {last}"), format!("{lanes} lanes"))
            }
            (Self::Shared, QueueName::Lane(_)) => {
                ("lanes share the queues of their slots".to_owned(), "shared queues".to_owned())
            }
            (Self::Slots(slots), QueueName::Slot(slot)) if *slot >= slots => {
                let last = slots.saturating_sub(1);
                (format!("there are slots 0 to {last}"), format!("{slots} slots"))
            }
            _ => return None,
        };
        Some(Step::delete(format!("queue {queue}"), reason).planned_from(state))
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "no subscription" => Self::Lanes(None),
            "shared queues" => Self::Shared,
            _ => match text.split_once(' ')? {
                (lanes, "lanes") => Self::Lanes(Some(lanes.parse().ok()?)),
                (slots, "slots") => Self::Slots(slots.parse().ok()?),
                _ => return None,
            },
        })
    }
}

/// The queue that a step is about, if it is one that a cleanup could have planned.
fn left_over_by(step: &Step) -> Option<QueueName> {
    let (queue, state) = step.id.strip_prefix("delete queue ")?.split_once(", from ")?;
    let queue: QueueName = queue.parse().ok()?;
    let possible = QueueState::parse(state)?.removal(&queue)?;
    (possible.id == step.id).then_some(queue)
}
