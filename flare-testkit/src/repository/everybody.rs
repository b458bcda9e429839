//! Clauses RS11, RR23 and RR24: what is read of all subscriptions at once.

use std::collections::{BTreeMap, BTreeSet};

use flare_core::model::subscription::Mode;
use flare_core::model::{
    LaneId, LaneState, Present, SubscriptionId, SubscriptionSpec, SubscriptionStatus, Timestamp,
};
use flare_core::port::Pending;

use super::make::{LONG_AGO, Make, Repo, all, epochs, must_apply, row};
use super::rows::{retry, settle};
use super::subscriptions::{replace, seat, stored};

/// RS11: members of all resources are given, each once, as they stand; deleting ones are not.
pub async fn rs11_gives_the_members_of_all_resources(repo: Repo) {
    let make = Make::new("rs11");
    assert_eq!(all(repo.scan_members()).await, []);
    let resources = [make.id(), make.id(), make.id()];
    use SubscriptionStatus::{Active, Deleting, Paused};
    let mut expected = BTreeSet::new();
    for (index, status) in [Active, Deleting, Paused].into_iter().cycle().take(15).enumerate() {
        let mut subscription = make.subscription(resources[index % 2 + index % 5 / 4]);
        let (passive, filtered) = (index % 3 == 2, index % 4 == 1);
        let mode = if passive { Mode::Passive } else { Mode::Active };
        let spec = SubscriptionSpec::post(make.client_url()).mode(mode);
        let spec = if filtered { spec.filter("document.a == 1") } else { spec };
        subscription.spec = spec.build().unwrap();
        let (id, _) = seat(&repo, subscription, 2).await;
        let slot = (index % 4 == 0).then_some(index as u32 * 100);
        replace(&repo, &stored(&repo, id).await, |new| (new.status, new.slot) = (status, slot))
            .await;
        if status != Deleting {
            expected.insert((id, 2, status.as_str(), slot, (passive, filtered)));
        }
    }
    let members = all(repo.scan_members()).await;
    assert_eq!(members.len(), expected.len(), "each once");
    let as_they_stand = members.iter().map(|member| {
        let (generation, status) = (member.generation.get(), member.status.as_str());
        let marks = (member.mode == Mode::Passive, member.filtered);
        (member.subscription, generation, status, member.slot, marks)
    });
    assert_eq!(as_they_stand.collect::<BTreeSet<_>>(), expected);
}

/// RR23: what is pending is counted by subscription, of those that have something pending.
pub async fn rr23_counts_what_is_pending_of_each(repo: Repo) {
    let make = Make::new("rr23");
    let epoch = epochs(&repo).await[0];
    assert_eq!(all(repo.pending_each()).await, []);
    let mut keys = Vec::new();
    for count in [3, 1, 4, 2] {
        keys.push(make.rows(&repo, count).await);
        repo.pass_ticks(2).await;
    }
    // The first has one later, the second nothing any more, the fourth one that is settled below what is wanted.
    must_apply(&repo, epoch, &keys[0][1], retry(1, 1, Timestamp::MAX)).await;
    must_apply(&repo, epoch, &keys[0][2], retry(1, 1, LONG_AGO)).await;
    must_apply(&repo, epoch, &keys[1][0], settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &keys[2][0], settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &keys[3][0], settle(0, Present::Yes)).await;
    let mut expected: BTreeMap<SubscriptionId, Pending> = BTreeMap::new();
    for (index, count) in [(0, 3), (2, 3), (3, 2)] {
        let (mut since, mut due) = (Timestamp::MAX, Timestamp::MAX);
        for key in &keys[index] {
            let row = row(&repo, key).await;
            if row.is_pending() {
                (since, due) = (since.min(row.since), due.min(row.due));
            }
        }
        expected.insert(keys[index][0].subscription, Pending::new(count, Some(since), Some(due)));
    }
    assert_eq!(expected[&keys[0][0].subscription].next_due, Some(LONG_AGO));
    let counts = all(repo.pending_each()).await;
    assert_eq!(counts.len(), 3, "each once, and only who is behind: {counts:?}");
    assert_eq!(counts.into_iter().collect::<BTreeMap<_, _>>(), expected);
}

/// RR24: all lanes of all subscriptions are given, however many, as they were stored last.
pub async fn rr24_gives_the_lanes_of_all_subscriptions(repo: Repo) {
    let make = Make::new("rr24");
    let [low, high, _] = epochs(&repo).await;
    assert_eq!(all(repo.scan_lanes()).await, []);
    let resource = make.id();
    let mut expected = BTreeMap::new();
    for (lanes, epoch) in [(1, low), (300, high), (0, low), (2, low)] {
        let (subscription, _) = seat(&repo, make.subscription(resource), 10).await;
        for round in [1, 2] {
            let states: Vec<LaneState> = (0..lanes)
                .map(|shard| {
                    let mut state = LaneState::new(LaneId::new(subscription, shard));
                    (state.epoch, state.delivered) = (epoch, u64::from(shard) + round);
                    state
                })
                .collect();
            if states.is_empty() {
                continue;
            }
            let answers = repo.store_lanes(epoch, states.clone()).await;
            assert!(answers.iter().all(|answer| answer.is_ok()));
            expected.extend(states.into_iter().map(|state| (state.lane, state)));
        }
    }
    let (gone, _) = seat(&repo, make.subscription(resource), 10).await;
    let state = LaneState::new(LaneId::new(gone, 0));
    assert!(repo.store_lanes(low, vec![state]).await.iter().all(|answer| answer.is_ok()));
    repo.remove_subscription(gone).await.unwrap();
    let lanes = all(repo.scan_lanes()).await;
    assert_eq!(lanes.len(), expected.len(), "each once");
    let lanes: BTreeMap<LaneId, LaneState> =
        lanes.into_iter().map(|state| (state.lane, state)).collect();
    assert!(lanes == expected, "as they were stored last");
}
