//! Clauses RR5, RR6, RR11 to RR13 and RR15: what a lane's owner reads, hurries and clears away.

use std::collections::BTreeSet;
use std::time::Duration;

use flare_core::model::{
    Applied, BucketRange, DocumentKey, Epoch, LaneId, LaneState, Present, RowKey, SubscriptionId,
    Timestamp,
};
use flare_core::port::{Pending, PendingQuery, RowRemoval};

use super::make::{
    LONG_AGO, Make, Repo, all, epochs, find_row, live, must_apply, now, only, row, spread,
};
use super::rows::{give_up, retry, settle};
use super::rows_dead::dead_letter;
use super::subscriptions::seat;

/// RR5: pending rows come earliest due first, by a time if one is named, at most so many.
pub async fn rr5_pending_rows_come_by_due_time(repo: Repo) {
    let make = Make::new("rr5_due");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 14).await;
    make.rows(&repo, 2).await;
    let due = |step: u64| LONG_AGO + Duration::from_millis(step);
    let order = [5, 2, 9, 0, 7, 4, 11, 1, 8, 3, 10, 6_usize];
    for (step, index) in order.into_iter().enumerate() {
        must_apply(&repo, epoch, &keys[index], retry(1, 1, due(step as u64))).await;
    }
    must_apply(&repo, epoch, &keys[12], settle(1, Present::Yes)).await;
    let letter = dead_letter(make.id(), LONG_AGO);
    must_apply(&repo, epoch, &keys[13], give_up(1, letter)).await;

    let expected = |count: usize| -> Vec<&RowKey> {
        order.iter().take(count).map(|index| &keys[*index]).collect()
    };
    let query = PendingQuery::new(keys[0].subscription, 100);
    for (due_by, limit, count) in [
        (None, 100, 12),
        (None, 12, 12),
        (None, 5, 5),
        (None, 1, 1),
        (Some(due(3)), 100, 4),
        (Some(due(3)), 2, 2),
        (Some(due(100)), 100, 12),
        (Some(due(0) - Duration::from_millis(1)), 100, 0),
    ] {
        let mut query = query.clone();
        (query.due_by, query.limit) = (due_by, limit);
        let rows = all(repo.pending_rows(query)).await;
        let found: Vec<&RowKey> = rows.iter().map(|row| &row.key).collect();
        assert_eq!(found, expected(count), "due by {due_by:?}, at most {limit}");
    }
}

/// RR5: the lanes of a subscription share its rows out, each row to its bucket's lane.
pub async fn rr5_lanes_share_the_rows_out(repo: Repo) {
    let make = Make::new("rr5_lanes");
    let keys = make.rows(&repo, 48).await;
    for lanes in [1_u16, 2, 3, 7] {
        let mut found = BTreeSet::new();
        for lane in 0..lanes {
            let query = PendingQuery::new(keys[0].subscription, 100)
                .buckets(BucketRange::of_lane(lane, lanes));
            for row in all(repo.pending_rows(query)).await {
                let bucket = u32::from(row.key.url.bucket().number());
                assert_eq!((bucket * u32::from(lanes)) >> 16, u32::from(lane), "of {lanes}");
                assert!(found.insert(row.key), "in two lanes of {lanes}");
            }
        }
        assert_eq!(found.len(), 48, "{lanes} lanes leave nobody out");
    }
    let none = PendingQuery::new(keys[0].subscription, 100).buckets(BucketRange::NONE);
    assert!(all(repo.pending_rows(none)).await.is_empty());
}

/// RR6: the lag is exact, with the oldest row's age and the next one's due time.
pub async fn rr6_the_lag_is_exact(repo: Repo) {
    let make = Make::new("rr6");
    let epoch = epochs(&repo).await[0];
    let nobody = repo.count_pending(Some(make.id())).await.unwrap();
    assert_eq!(nobody, Pending::new(0, None, None));
    assert_eq!(repo.count_pending(None).await.unwrap(), nobody);
    let mut all_keys = Vec::new();
    for _ in 0..2 {
        all_keys.push(make.rows(&repo, 6).await);
        repo.pass_ticks(2).await;
    }
    let [one, other] = [&all_keys[0], &all_keys[1]];
    must_apply(&repo, epoch, &one[0], settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &one[1], give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    for key in &one[2..] {
        must_apply(&repo, epoch, key, retry(1, 1, Timestamp::MAX)).await;
    }
    must_apply(&repo, epoch, &one[4], retry(1, 1, LONG_AGO)).await;
    // Settled by a version below the one wanted is still pending.
    must_apply(&repo, epoch, &other[3], settle(0, Present::Yes)).await;

    let since = async |keys: &[RowKey]| {
        let mut oldest = None;
        for key in keys {
            let since = row(&repo, key).await.since;
            oldest = Some(oldest.map_or(since, |oldest: Timestamp| oldest.min(since)));
        }
        oldest
    };
    let one_since = since(&one[2..]).await;
    let other_since = since(other).await;
    let pending = async |subscription| repo.count_pending(subscription).await.unwrap();
    let of_one = Pending::new(4, one_since, Some(LONG_AGO));
    assert_eq!(pending(Some(one[0].subscription)).await, of_one);
    let of_other = Pending::new(6, other_since, other_since);
    assert_eq!(pending(Some(other[0].subscription)).await, of_other);
    let of_all = Pending::new(10, one_since, Some(LONG_AGO));
    assert_eq!(pending(None).await, of_all);
}

/// RR11: pending rows that are due later become due now, so many at most, and nothing else.
pub async fn rr11_makes_later_rows_due_now(repo: Repo) {
    let make = Make::new("rr11");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 8).await;
    let other = make.rows(&repo, 1).await;
    for key in keys[..5].iter().chain(&other) {
        must_apply(&repo, epoch, key, retry(1, 4, Timestamp::MAX)).await;
    }
    must_apply(&repo, epoch, &keys[5], retry(1, 4, LONG_AGO)).await;
    must_apply(&repo, epoch, &keys[6], settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &keys[6], retry(2, 4, Timestamp::MAX)).await;
    let mut before = Vec::new();
    for key in keys.iter().chain(&other) {
        before.push(row(&repo, key).await);
    }
    repo.pass_ticks(1).await;
    let start = now(&repo).await;
    let subscription = keys[0].subscription;
    let mut hurried = 0;
    loop {
        let count = repo.expedite_rows(subscription, 2).await.unwrap();
        assert!(count <= 2, "{count} are more than asked for");
        if count == 0 {
            break;
        }
        hurried += count;
    }
    assert_eq!(hurried, 5);
    let end = now(&repo).await;
    for (index, mut expected) in before.into_iter().enumerate() {
        let after = row(&repo, &expected.key).await;
        if index < 5 {
            assert!(start <= after.due && after.due <= end, "due now, by store time");
            expected.due = after.due;
        }
        assert_eq!(after, expected, "row {index}");
    }
}

/// RR12: a subscription's rows go bit by bit, whatever their state, until none is left.
pub async fn rr12_removes_rows_bit_by_bit(repo: Repo) {
    let make = Make::new("rr12_rows");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 8).await;
    let stays = make.rows(&repo, 1).await;
    must_apply(&repo, epoch, &keys[0], settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &keys[1], give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    must_apply(&repo, epoch, &keys[2], retry(1, 1, Timestamp::MAX)).await;
    let mut removed = 0;
    loop {
        let count = repo.remove_rows(keys[0].subscription, 3).await.unwrap();
        assert!(count <= 3, "{count} are more than asked for");
        removed += count;
        let mut left = 0;
        for key in &keys {
            left += u64::from(find_row(&repo, key).await.is_some());
        }
        assert_eq!(removed + left, 8);
        if count == 0 {
            assert_eq!(left, 0, "zero means that none is left");
            break;
        }
    }
    assert!(find_row(&repo, &stays[0]).await.is_some());
}

/// RR12: a single row goes only if it has nothing left to tell up to the version named.
pub async fn rr12_removes_a_settled_row_alone(repo: Repo) {
    let make = Make::new("rr12_settled");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 5).await;
    let document = make.lone_document();
    let newer = RowKey::new(keys[0].subscription, document.url.clone());
    spread(&repo, newer.subscription, &document, live(2)).await;
    must_apply(&repo, epoch, &newer, settle(2, Present::Yes)).await;
    must_apply(&repo, epoch, &keys[1], settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &keys[2], settle(1, Present::No)).await;
    must_apply(&repo, epoch, &keys[3], give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    let nobody = RowKey::new(make.id(), make.url("/nobody"));
    use RowRemoval::{Kept, Missing, Removed};
    let cases = [
        (&keys[0], live(1), Kept, "pending"),
        (&nobody, live(1), Missing, "never there"),
        (&keys[1], live(1), Removed, "settled"),
        (&keys[2], live(5), Removed, "settled below"),
        (&keys[3], live(1), Kept, "a dead letter"),
        (&newer, live(1), Kept, "past the version"),
    ];
    let rows = cases.iter().map(|(key, version, ..)| ((*key).clone(), *version)).collect();
    let answers = repo.remove_settled_rows(rows).await;
    assert_eq!(answers.len(), cases.len());
    for ((key, _, expected, case), answer) in cases.into_iter().zip(answers) {
        assert_eq!(answer.unwrap(), expected, "{case}");
        assert_eq!(find_row(&repo, key).await.is_some(), expected == Kept, "{case}");
    }
    let again = repo.remove_settled_rows(vec![(keys[1].clone(), live(1))]).await;
    assert_eq!(only(again).unwrap(), Missing, "removed already");
}

/// RR15: the rows of documents are found whosever they are, in one order, page by page.
pub async fn rr15_finds_the_rows_of_documents(repo: Repo) {
    let make = Make::new("rr15");
    let documents = make.documents(4);
    let elsewhere = DocumentKey::new(make.id(), documents[1].url.clone());
    let clients: Vec<SubscriptionId> = (0..3).map(|_| make.id()).collect();
    let mut expected = Vec::new();
    for client in clients.iter().rev() {
        for document in &documents[..3] {
            spread(&repo, *client, document, live(1)).await;
            let key = RowKey::new(*client, document.url.clone());
            if *document != documents[2] {
                expected.push(key);
            }
        }
    }
    // A document of another resource has the same URL.
    spread(&repo, make.id(), &elsewhere, live(1)).await;
    let by_url = |key: &RowKey| (key.url.clone(), key.subscription);
    expected.sort_by_key(by_url);

    // One that nobody has, and in no order.
    let asked = vec![documents[3].clone(), documents[1].clone(), documents[0].clone()];
    let found = async |after: Option<&RowKey>, limit| {
        let rows = repo.rows_of(asked.clone(), after.cloned(), limit).await.unwrap().items;
        rows.into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(found(None, 100).await, expected);
    for limit in 1..=expected.len() + 1 {
        let mut all = Vec::new();
        loop {
            let page = found(all.last(), limit).await;
            let last = page.len() < limit;
            assert!(page.len() <= limit, "{} are more than asked for", page.len());
            all.extend(page);
            assert!(all.len() <= expected.len(), "{limit} at a time: one comes twice");
            if last {
                break;
            }
        }
        assert_eq!(all, expected, "{limit} at a time");
    }
    let theirs = repo.rows_of(vec![elsewhere.clone()], None, 100).await.unwrap().items;
    assert_eq!(theirs.len(), 1);
    assert_eq!(theirs[0].document, elsewhere);
    assert_eq!(repo.rows_of(Vec::new(), None, 100).await.unwrap().items, []);
    // What is removed is not found any more.
    let removals = repo.remove_rows(clients[0], 100).await.unwrap();
    assert!(removals > 0);
    expected.retain(|key| key.subscription != clients[0]);
    assert_eq!(found(None, 100).await, expected);
}

/// RR13: a lane's state is stored unless a greater epoch has stored one; read in shard order.
pub async fn rr13_lane_states_are_fenced(repo: Repo) {
    let make = Make::new("rr13");
    let [low, middle, high] = epochs(&repo).await;
    let resource = make.id();
    let (subscription, _) = seat(&repo, make.subscription(resource), 10).await;
    let lanes = async || repo.lanes(subscription).await.unwrap().items;
    assert_eq!(lanes().await, []);

    let given = [2, 0, 1].map(|shard| state(subscription, shard, middle, 1));
    let answers = repo.store_lanes(middle, given.to_vec()).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap() == Applied::Done));
    let (stranger, _) = seat(&repo, make.subscription(resource), 10).await;
    let stranger = state(stranger, 0, high, 9);
    only(repo.store_lanes(high, vec![stranger]).await).unwrap();
    let mut expected = [0, 1, 2].map(|shard| state(subscription, shard, middle, 1));
    assert_eq!(lanes().await, expected);

    let store = async |epoch, shard, counter| {
        let state = state(subscription, shard, epoch, counter);
        only(repo.store_lanes(epoch, vec![state]).await).unwrap()
    };
    assert_eq!(store(low, 0, 2).await, Applied::Fenced { epoch: middle });
    assert_eq!(lanes().await, expected, "nothing changed");
    assert_eq!(store(middle, 0, 3).await, Applied::Done);
    assert_eq!(store(high, 1, 4).await, Applied::Done);
    assert_eq!(store(middle, 1, 5).await, Applied::Fenced { epoch: high });
    expected[0] = state(subscription, 0, middle, 3);
    expected[1] = state(subscription, 1, high, 4);
    assert_eq!(lanes().await, expected);

    // One lane's fence is not another's.
    let batch = vec![state(subscription, 1, middle, 6), state(subscription, 2, middle, 7)];
    let answers = repo.store_lanes(middle, batch).await;
    let answers: Vec<Applied> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, [Applied::Fenced { epoch: high }, Applied::Done]);
}

/// RR13: a lane of a subscription that is not there has no state, whoever stores one.
pub async fn rr13_a_lane_of_nobody_has_no_state(repo: Repo) {
    let make = Make::new("rr13_nobody");
    let [low, middle, high] = epochs(&repo).await;
    let resource = make.id();
    let (gone, _) = seat(&repo, make.subscription(resource), 10).await;
    let (stays, _) = seat(&repo, make.subscription(resource), 10).await;
    repo.remove_subscription(gone).await.unwrap();
    for nobody in [make.id(), gone] {
        for epoch in [middle, low, high] {
            let batch = [nobody, stays, nobody].map(|id| state(id, 1, epoch, 1)).to_vec();
            let answers = repo.store_lanes(epoch, batch).await;
            assert!(answers[1].is_ok());
            for answer in [&answers[0], &answers[2]] {
                assert_eq!(*answer.as_ref().unwrap(), Applied::Missing);
            }
            assert_eq!(repo.lanes(nobody).await.unwrap().items, []);
        }
    }
    assert_eq!(repo.lanes(stays).await.unwrap().items.len(), 1);
}

/// A lane's state with something in every field.
fn state(subscription: SubscriptionId, shard: u16, epoch: Epoch, counter: u64) -> LaneState {
    let mut state = LaneState::new(LaneId::new(subscription, shard));
    let time = |step| Some(LONG_AGO + Duration::from_nanos(step));
    state.epoch = epoch;
    state.node = Some("node.$1 😀".to_owned());
    (state.in_flight, state.failures_in_a_row) = (u32::MAX, 5);
    (state.delivered, state.failed, state.discarded) = (counter, counter << 40, counter + 2);
    (state.failing_since, state.hold_until) = (time(1), time(2));
    (state.released_at, state.last_success_at) = (time(3), time(4));
    (state.last_error_at, state.last_error) = (time(5), Some("connect: \u{0} \"x\"".to_owned()));
    state.queue_restored_at = time(6);
    state.updated_at = LONG_AGO + Duration::from_nanos(counter);
    state
}
