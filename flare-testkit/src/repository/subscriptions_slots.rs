//! Clause RS10: whose lanes are in some slots.

use std::collections::BTreeSet;

use flare_core::model::{Subscription, SubscriptionId, SubscriptionStatus};
use flare_core::port::SlotQuery;

use super::make::{Make, Repo, all};
use super::subscriptions::{replace, seat, stored};

/// How many slots ids are hashed onto; what is reserved comes after them.
const HASHED: u32 = 4;

/// The slot that an id is hashed onto: its last four bytes as a number, modulo the slots.
fn hashed(id: SubscriptionId) -> u32 {
    let [.., a, b, c, d] = *id.as_bytes();
    u32::from_be_bytes([a, b, c, d]) % HASHED
}

/// Subscriptions of which some have a slot reserved, some leave one, and some are going.
async fn settle(repo: &Repo, make: &Make, count: usize) -> Vec<Subscription> {
    let resources = [make.id(), make.id()];
    let mut settled = Vec::new();
    for index in 0..count {
        let subscription = make.subscription(resources[index % 2]);
        let (id, _) = seat(repo, subscription, 1_000).await;
        replace(repo, &stored(repo, id).await, |new| {
            new.status = match index % 5 {
                0 => SubscriptionStatus::Deleting,
                1 => SubscriptionStatus::Paused,
                _ => SubscriptionStatus::Active,
            };
            new.slot = (index % 3 == 0).then_some(HASHED + index as u32 % 4);
            new.moving_from = (index % 4 == 0).then_some(index as u32 % (HASHED + 4));
        })
        .await;
        settled.push(stored(repo, id).await);
    }
    settled
}

async fn found(repo: &Repo, slots: &[u32], after: Option<SubscriptionId>) -> Vec<SubscriptionId> {
    let query = SlotQuery::new(slots.iter().copied(), HASHED);
    let found = all(repo.subscriptions_in(query, after)).await;
    found.into_iter().map(|subscription| subscription.id).collect()
}

/// Every choice of slots, of those that ids are hashed onto and of four that are reserved.
fn choices() -> Vec<Vec<u32>> {
    let choices = [0b0000_0000, 0b0000_0001, 0b0000_0110, 0b0000_1111, 0b0001_0000, 0b1010_0101];
    let slots = |choice: u32| (0..HASHED + 4).filter(|slot| choice & 1 << slot != 0).collect();
    choices.into_iter().chain([0b1111_0000, 0b1111_1111]).map(slots).collect()
}

/// RS10: found are those hashed onto the slots named, those a slot of these is reserved for, and those
/// that have yet to leave one: each once and as it is stored, and no others.
pub async fn rs10_finds_whose_lanes_are_in_the_slots(repo: Repo) {
    let make = Make::new("rs10_finds");
    let settled = settle(&repo, &make, 60).await;
    let slots: BTreeSet<u32> = settled.iter().map(|it| hashed(it.id)).collect();
    assert_eq!(slots.len(), HASHED as usize, "some are hashed onto each slot");
    for slots in choices() {
        let query = SlotQuery::new(slots.iter().copied(), HASHED);
        let mut found = all(repo.subscriptions_in(query, None)).await;
        found.sort_by_key(|it| it.id);
        let belongs = |it: &Subscription| {
            let named = [Some(hashed(it.id)), it.slot, it.moving_from];
            named.into_iter().flatten().any(|slot| slots.contains(&slot))
        };
        let expected: Vec<_> = settled.iter().filter(|it| belongs(it)).cloned().collect();
        assert_eq!(found, expected, "{slots:?}");
    }
}

/// RS10: it is found where it is now, and where it was no more.
pub async fn rs10_finds_it_where_it_is_now(repo: Repo) {
    let make = Make::new("rs10_now");
    let (id, _) = seat(&repo, make.subscription(make.id()), 10).await;
    let [home, reserved, other] = [hashed(id), HASHED + 1, HASHED + 2];
    let steps: [(Option<u32>, Option<u32>, &[u32]); 5] = [
        (Some(reserved), Some(home), &[home, reserved]),
        (Some(reserved), None, &[home, reserved]),
        (Some(other), Some(reserved), &[home, reserved, other]),
        (None, Some(other), &[home, other]),
        (None, None, &[home]),
    ];
    for (slot, moving_from, expected) in steps {
        let old = stored(&repo, id).await;
        replace(&repo, &old, |new| (new.slot, new.moving_from) = (slot, moving_from)).await;
        for asked in 0..HASHED + 4 {
            let there = found(&repo, &[asked], None).await.contains(&id);
            assert_eq!(there, expected.contains(&asked), "slot {asked}: {slot:?} {moving_from:?}");
        }
    }
    repo.remove_subscription(id).await.unwrap();
    let everywhere: Vec<u32> = (0..HASHED + 4).collect();
    assert!(!found(&repo, &everywhere, None).await.contains(&id));
}

/// RS10: a scan goes on where another ended, whatever became of the one it ended at.
pub async fn rs10_goes_on_after_each_of_them(repo: Repo) {
    let make = Make::new("rs10_after");
    settle(&repo, &make, 30).await;
    for slots in choices() {
        let whole = found(&repo, &slots, None).await;
        assert_eq!(found(&repo, &slots, None).await, whole, "the order stays");
        for (index, id) in whole.iter().enumerate() {
            assert_eq!(found(&repo, &slots, Some(*id)).await, whole[index + 1..], "{slots:?}");
        }
    }
    let everywhere: Vec<u32> = (0..HASHED + 4).collect();
    let whole = found(&repo, &everywhere, None).await;
    for (index, id) in whole.iter().enumerate().step_by(7) {
        repo.remove_subscription(*id).await.unwrap();
        let mut rest = found(&repo, &everywhere, Some(*id)).await;
        rest.retain(|it| whole.contains(it));
        assert_eq!(rest, whole[index + 1..]);
    }
}
