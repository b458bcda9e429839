//! Where it is known which queues the settings call for, they are all made and no others kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::model::{Placement, SubscriptionStatus};
use flare_core::port::{Part, Purpose, QueueName, Step, StepOutcome, SubscriptionStore, Upkeep};
use flare_core::upkeep::QueueUpkeep;
use flare_core::{Backend, ErrorKind};
use flare_testkit::Fixture;

use super::queues::{create, id, lane, queues, subscribe, upkeep};

const SLOTS: u32 = 3;

fn placed(memory: &MemoryBackend, placement: Placement) -> QueueUpkeep {
    upkeep(memory).placed(placement, SLOTS)
}

fn slots() -> impl Iterator<Item = QueueName> {
    (0..SLOTS).map(QueueName::Slot)
}

/// Plans and applies all of it; gives what was done.
async fn keep(memory: &MemoryBackend, placement: Placement, purpose: Purpose) -> usize {
    let caretaker = Backend::none().upkeep(Arc::new(placed(memory, placement))).caretaker();
    let plan = caretaker.plan(purpose, &[Part::Queue]).await.unwrap();
    caretaker.apply(&plan, &()).await.unwrap().done()
}

struct Isolated;

#[async_trait]
impl Fixture for Isolated {
    type Port = dyn Upkeep;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Upkeep>, ()) {
        let memory = MemoryBackend::new();
        subscribe(&memory, 1, 2).await;
        create(&memory, [QueueName::Slot(1), QueueName::Slot(SLOTS), lane(1, 0), lane(2, 0)]).await;
        (Arc::new(placed(&memory, Placement::Isolated)), ())
    }
}

flare_testkit::upkeep_suite!(Isolated);

#[tokio::test]
async fn a_change_of_placement_makes_the_new_queues_and_then_removes_the_old_ones() {
    let memory = MemoryBackend::new();
    subscribe(&memory, 1, 2).await;
    subscribe(&memory, 2, 1).await;
    let stages = [QueueName::Partition, QueueName::Spread];
    let shared = BTreeSet::from_iter(stages.into_iter().chain(slots()));
    let lanes = [lane(1, 0), lane(1, 1), lane(2, 0)];
    let isolated = BTreeSet::from_iter(shared.iter().cloned().chain(lanes));
    let there = async || BTreeSet::from_iter(queues(&memory).await);

    assert_eq!(keep(&memory, Placement::Shared, Purpose::Setup).await, 5);
    assert_eq!(there().await, shared);
    assert_eq!(keep(&memory, Placement::Isolated, Purpose::Setup).await, 3);
    assert_eq!(there().await, isolated);
    for purpose in [Purpose::Setup, Purpose::Fixup, Purpose::Cleanup] {
        assert_eq!(keep(&memory, Placement::Isolated, purpose).await, 0, "all is well");
    }
    assert_eq!(keep(&memory, Placement::Shared, Purpose::Cleanup).await, 3);
    assert_eq!(there().await, shared);
}

#[tokio::test]
async fn queues_of_slots_beyond_their_number_are_nobodys() {
    let memory = MemoryBackend::new();
    create(&memory, slots().chain([QueueName::Slot(SLOTS), QueueName::Slot(900)])).await;
    let steps = placed(&memory, Placement::Shared).plan(Purpose::Cleanup).await.unwrap();
    let shown: Vec<_> = steps.iter().map(|it| (it.subject.as_str(), &*it.reason)).collect();
    let reason = "there are slots 0 to 2";
    assert_eq!(shown, [("queue slot-3", reason), ("queue slot-900", reason)]);
    // Somebody who knows of more slots keeps them, and one who knows nothing of slots all.
    let more = upkeep(&memory).placed(Placement::Shared, 901);
    for knows in [more, upkeep(&memory)] {
        for step in &steps {
            let outcome = knows.apply(Purpose::Cleanup, step, &()).await.unwrap();
            assert_eq!(outcome, StepOutcome::NotNeeded);
        }
    }
    assert_eq!(keep(&memory, Placement::Shared, Purpose::Cleanup).await, 2);
    assert_eq!(queues(&memory).await, slots().collect::<Vec<_>>());
}

#[tokio::test]
async fn lanes_that_are_gone_by_then_get_no_queue() {
    let memory = MemoryBackend::new();
    subscribe(&memory, 1, 2).await;
    let upkeep = placed(&memory, Placement::Isolated);
    let steps = upkeep.plan(Purpose::Setup).await.unwrap();
    let of_lanes: Vec<&Step> = steps.iter().filter(|it| it.subject.contains("lane-")).collect();
    assert_eq!(of_lanes.len(), 2);
    let repository = memory.repository();
    let mut subscription = repository.subscription(id(1)).await.unwrap().unwrap();
    subscription.status = SubscriptionStatus::Deleting;
    let generation = subscription.generation;
    repository.replace_subscription(generation, subscription).await.unwrap();
    for step in of_lanes {
        let outcome = upkeep.apply(Purpose::Setup, step, &()).await.unwrap();
        assert_eq!(outcome, StepOutcome::NotNeeded, "{}", step.id);
    }
    assert!(queues(&memory).await.is_empty());
    let left: Vec<_> = upkeep.plan(Purpose::Setup).await.unwrap();
    assert!(left.iter().all(|step| !step.subject.contains("lane-")), "{left:?}");
}

#[tokio::test]
async fn queues_that_no_setting_calls_for_are_not_made() {
    let memory = MemoryBackend::new();
    subscribe(&memory, 1, 1).await;
    for (upkeep, queue) in [
        (placed(&memory, Placement::Shared), QueueName::Slot(SLOTS)),
        (placed(&memory, Placement::Shared), lane(1, 0)),
        (upkeep(&memory), QueueName::Slot(0)),
        (upkeep(&memory), lane(1, 0)),
    ] {
        let step = Step::create(format!("queue {queue}"), "made up");
        let error = upkeep.apply(Purpose::Setup, &step, &()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{}", step.id);
    }
    assert!(queues(&memory).await.is_empty());
}
