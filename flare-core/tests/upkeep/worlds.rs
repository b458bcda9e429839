//! In any world of queues and subscriptions a cleanup is about the queues of lanes that nobody
//! has, and about no other.

use std::collections::BTreeSet;

use flare_backend_memory::MemoryBackend;
use flare_core::Backend;
use flare_core::port::{Part, Purpose, QueueName, SubscriptionStore};
use proptest::prelude::*;

use super::queues::{create, id, lane, queues, subscribe};

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) }
}

/// Subscriptions that there may be, and lanes they may have.
const SUBSCRIPTIONS: u8 = 6;
const LANES: u16 = 5;

fn queue() -> impl Strategy<Value = QueueName> {
    prop_oneof![
        1 => Just(QueueName::Partition),
        1 => Just(QueueName::Spread),
        2 => (0_u32..1_024).prop_map(QueueName::Slot),
        8 => (0..SUBSCRIPTIONS, 0..LANES + 2).prop_map(|(number, shard)| lane(number, shard)),
    ]
}

/// Which subscriptions are stored, with how many lanes.
fn stored() -> impl Strategy<Value = Vec<Option<u16>>> {
    prop::collection::vec(prop::option::of(1..=LANES), usize::from(SUBSCRIPTIONS))
}

fn in_use(queue: &QueueName, stored: &[Option<u16>]) -> bool {
    let QueueName::Lane(lane) = queue else { return true };
    let number = (0..SUBSCRIPTIONS).find(|number| id(*number) == lane.subscription).unwrap();
    stored[usize::from(number)].is_some_and(|lanes| lane.shard < lanes)
}

async fn store(memory: &MemoryBackend, world: &[Option<u16>]) {
    for (number, lanes) in (0..SUBSCRIPTIONS).zip(world) {
        memory.repository().remove_subscription(id(number)).await.unwrap();
        if let Some(lanes) = lanes {
            subscribe(memory, number, *lanes).await;
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_cleanup_removes_what_is_in_use_neither_then_nor_now(
        there in prop::collection::btree_set(queue(), 0..20),
        then in stored(),
        now in stored(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (planned, left) = runtime.block_on(async {
            let memory = MemoryBackend::new();
            create(&memory, there.clone()).await;
            store(&memory, &then).await;
            let caretaker = Backend::from(memory.clone()).queue_upkeep("memory").caretaker();
            let plan = caretaker.plan(Purpose::Cleanup, &Part::ALL).await.unwrap();
            store(&memory, &now).await;
            let report = caretaker.apply(&plan, &()).await.unwrap();
            assert!(report.failure().is_none(), "{report:?}");
            let planned: BTreeSet<_> =
                plan.steps().map(|(_, step)| step.subject.clone()).collect();
            (planned, BTreeSet::from_iter(queues(&memory).await))
        });
        let expected: BTreeSet<_> = there
            .iter()
            .filter(|queue| !in_use(queue, &then))
            .map(|queue| format!("queue {queue}"))
            .collect();
        prop_assert_eq!(planned, expected);
        for queue in &there {
            let gone = !left.contains(queue);
            let needed = in_use(queue, &then) || in_use(queue, &now);
            prop_assert!(!(gone && needed), "{} is gone", queue);
            // What was nobody's all the time, in the same way, has no reason to stay.
            let unchanged = then == now && !in_use(queue, &then);
            prop_assert!(gone || !unchanged, "{} is still there", queue);
        }
    }
}
