//! The queues of any backend are kept by the contract, and lanes' queues for as long as their
//! subscriptions.

use std::sync::Arc;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::model::{
    LaneId, ResourceId, Subscription, SubscriptionId, SubscriptionSpec, SubscriptionStatus,
    Timestamp,
};
use flare_core::port::{
    Part, Purpose, Queue, QueueName, Step, StepOutcome, SubscriptionStore, Upkeep,
};
use flare_core::upkeep::{QueueUpkeep, StepResult};
use flare_core::{Backend, ErrorKind};
use flare_testkit::Fixture;
use futures::TryStreamExt;

pub(crate) fn id(number: u8) -> SubscriptionId {
    SubscriptionId::from_bytes([number; 16])
}

pub(crate) fn lane(number: u8, shard: u16) -> QueueName {
    QueueName::Lane(LaneId::new(id(number), shard))
}

pub(crate) fn upkeep(memory: &MemoryBackend) -> QueueUpkeep {
    QueueUpkeep::new("memory", memory.queue(), memory.repository())
}

/// Stores a subscription with so many lanes.
pub(crate) async fn subscribe(memory: &MemoryBackend, number: u8, lanes: u16) {
    let spec = SubscriptionSpec::post(format!("https://client.example/{number}"));
    let spec = spec.concurrency(64).lanes(lanes.into()).build().unwrap();
    let resource = ResourceId::from_bytes([0; 16]);
    let subscription = Subscription::new(id(number), resource, spec, Timestamp::EPOCH);
    memory.repository().insert_subscription(subscription, 100).await.unwrap();
}

pub(crate) async fn create(memory: &MemoryBackend, queues: impl IntoIterator<Item = QueueName>) {
    for queue in queues {
        memory.queue().create(&queue).await.unwrap();
    }
}

pub(crate) async fn queues(memory: &MemoryBackend) -> Vec<QueueName> {
    let mut queues: Vec<_> = memory.queue().list().try_collect().await.unwrap();
    queues.sort();
    queues
}

struct Memory;

#[async_trait]
impl Fixture for Memory {
    type Port = dyn Upkeep;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Upkeep>, ()) {
        let memory = MemoryBackend::new();
        subscribe(&memory, 1, 2).await;
        create(&memory, [QueueName::Slot(3), lane(1, 0), lane(1, 1)]).await;
        create(&memory, [lane(1, 2), lane(2, 0), lane(2, 1)]).await;
        (Arc::new(upkeep(&memory)), ())
    }
}

flare_testkit::upkeep_suite!(Memory);

async fn subjects(memory: &MemoryBackend, purpose: Purpose) -> Vec<String> {
    let steps = upkeep(memory).plan(purpose).await.unwrap();
    steps.into_iter().map(|step| step.subject).collect()
}

#[tokio::test]
async fn the_queues_between_the_stages_are_created() {
    let memory = MemoryBackend::new();
    for purpose in [Purpose::Setup, Purpose::Fixup] {
        assert_eq!(subjects(&memory, purpose).await, ["queue partition", "queue spread"]);
    }
    create(&memory, [QueueName::Partition]).await;
    assert_eq!(subjects(&memory, Purpose::Fixup).await, ["queue spread"]);

    let backend = Backend::from(memory.clone()).queue_upkeep("memory");
    let caretaker = backend.caretaker();
    let plan = caretaker.plan(Purpose::Setup, &[Part::Queue]).await.unwrap();
    assert_eq!(caretaker.apply(&plan, &()).await.unwrap().done(), 1);
    assert_eq!(queues(&memory).await, [QueueName::Partition, QueueName::Spread]);
}

#[tokio::test]
async fn only_lanes_of_nobody_and_beyond_their_number_are_left_over() {
    let memory = MemoryBackend::new();
    subscribe(&memory, 1, 2).await;
    create(&memory, [QueueName::Partition, QueueName::Spread, QueueName::Slot(7)]).await;
    create(&memory, [lane(1, 0), lane(1, 1), lane(1, 2), lane(2, 0)]).await;
    let steps = upkeep(&memory).plan(Purpose::Cleanup).await.unwrap();
    let shown: Vec<_> = steps.iter().map(|step| (step.subject.clone(), &*step.reason)).collect();
    let expected = [
        (format!("queue {}", lane(1, 2)), "its subscription has lanes 0 to 1"),
        (format!("queue {}", lane(2, 0)), "its subscription does not exist"),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_lane_that_is_in_use_again_keeps_its_queue() {
    let memory = MemoryBackend::new();
    create(&memory, [lane(1, 0), lane(1, 1)]).await;
    let steps = upkeep(&memory).plan(Purpose::Cleanup).await.unwrap();
    assert_eq!(steps.len(), 2);
    subscribe(&memory, 1, 1).await;
    for step in &steps {
        let outcome = upkeep(&memory).apply(Purpose::Cleanup, step, &()).await.unwrap();
        assert_eq!(outcome, StepOutcome::NotNeeded, "{}", step.id);
    }
    assert_eq!(queues(&memory).await, [lane(1, 0), lane(1, 1)]);
    // The second lane is beyond its number now, which nobody has been shown.
    let again = subjects(&memory, Purpose::Cleanup).await;
    assert_eq!(again, [format!("queue {}", lane(1, 1))]);
}

#[tokio::test]
async fn a_subscription_that_is_being_deleted_keeps_its_queues_until_it_is_gone() {
    let memory = MemoryBackend::new();
    subscribe(&memory, 1, 1).await;
    create(&memory, [lane(1, 0)]).await;
    let repository = memory.repository();
    let mut subscription = repository.subscription(id(1)).await.unwrap().unwrap();
    subscription.status = SubscriptionStatus::Deleting;
    let generation = subscription.generation;
    repository.replace_subscription(generation, subscription).await.unwrap();
    assert_eq!(subjects(&memory, Purpose::Cleanup).await, [""; 0]);
    repository.remove_subscription(id(1)).await.unwrap();
    assert_eq!(subjects(&memory, Purpose::Cleanup).await.len(), 1);
}

#[tokio::test]
async fn a_plan_from_before_a_change_of_lanes_deletes_nothing() {
    let memory = MemoryBackend::new();
    subscribe(&memory, 1, 2).await;
    create(&memory, [lane(1, 5)]).await;
    let caretaker = Backend::from(memory.clone()).queue_upkeep("memory").caretaker();
    let plan = caretaker.plan(Purpose::Cleanup, &Part::ALL).await.unwrap();
    memory.repository().remove_subscription(id(1)).await.unwrap();
    let report = caretaker.apply(&plan, &()).await.unwrap();
    let results: Vec<_> = report.steps.iter().map(|step| &step.result).collect();
    assert!(matches!(*results, [StepResult::NoLongerPlanned, StepResult::New]), "{results:?}");
    assert_eq!(queues(&memory).await, [lane(1, 5)]);
}

#[tokio::test]
async fn steps_that_it_could_not_have_planned_delete_nothing() {
    let memory = MemoryBackend::new();
    create(&memory, [QueueName::Partition, QueueName::Slot(1), lane(1, 0)]).await;
    let there = queues(&memory).await;
    let upkeep = upkeep(&memory);
    for (subject, state) in [
        ("queue partition".to_owned(), "no subscription"),
        ("queue slot-1".to_owned(), "no subscription"),
        ("queue somebody-else-s".to_owned(), "no subscription"),
        (format!("queue {}", lane(1, 0)), "anything"),
        (format!("queue {}", lane(1, 0)), "1 lanes"),
        (format!("queue {}", lane(1, 0)), "+0 lanes"),
    ] {
        let step = Step::delete(subject, "made up").planned_from(state);
        let error = upkeep.apply(Purpose::Cleanup, &step, &()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{}", step.id);
        assert_eq!(error.field(), Some("step"));
    }
    assert_eq!(queues(&memory).await, there);
}
