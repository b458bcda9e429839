//! Two acts at once, on stores that take their time, one beginning so many half calls after the
//! other: what is left is what one order of the two leaves.

use std::time::Duration;

use super::model::{Act, KINDS, Model, NARROW, WIDE};
use super::world::{CALL, Overlapping, URL, change, truthful};

/// More than the calls of any act, in halves of one.
const STEPS: u32 = 10;

const WIDE_ONLY: &[Act] = &[Act::Create(WIDE), Act::Put(1)];
const MOVING: &[Act] = &[Act::Create(WIDE), Act::Put(1), Act::Create(NARROW)];
const MOVED: &[Act] = &[Act::Create(WIDE), Act::Put(1), Act::Create(NARROW), Act::Put(2)];
const DELETED: &[Act] = &[Act::Create(WIDE), Act::Put(1), Act::Delete, Act::Create(NARROW)];

#[tokio::test]
async fn two_acts_at_once_leave_what_one_order_of_them_leaves() {
    // No revision is named: which one that would be depends on where the document is by then.
    let documents = [Act::Put(3), Act::Put(4), Act::Delete];
    for before in [WIDE_ONLY, MOVING, MOVED, DELETED] {
        for one in documents {
            for other in documents {
                for step in 0..STEPS {
                    meet(before, one, other, step).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_resource_that_comes_or_goes_meanwhile_leaves_what_one_order_leaves() {
    for (before, resource) in [
        (WIDE_ONLY, Act::Create(NARROW)),
        (MOVING, Act::Drop(NARROW)),
        (MOVED, Act::Drop(NARROW)),
        (DELETED, Act::Drop(NARROW)),
    ] {
        for act in [Act::Put(3), Act::Delete] {
            for step in 0..STEPS {
                meet(before, act, resource, step).await;
            }
        }
    }
}

async fn meet(before: &[Act], one: Act, other: Act, step: u32) {
    let mut overlapping = Overlapping::after(before).await;
    let seen = overlapping.model().await;
    let (flare, then) = (overlapping.slow(), seen.clone());
    let first = tokio::spawn(async move { change(&flare, then, one).await });
    overlapping.world.pass(CALL / 2 * step).await;
    if let Act::Create(_) | Act::Drop(_) = other {
        overlapping.act(other).await;
    } else {
        let flare = overlapping.slow();
        overlapping.world.in_time(change(&flare, seen, other)).await;
    }
    overlapping.world.in_time(first).await.unwrap();
    overlapping.world.settled().await;
    overlapping.world.pass(Duration::from_secs(12)).await;
    overlapping.world.settled().await;
    let found = overlapping.model().await;
    let orders = [[one, other], [other, one]];
    let orders = orders.map(|order| Model::after(&[before, &order].concat()));
    let fits = |order: &Model| order.kinds == found.kinds && order.held() == found.held();
    let story = format!("{one:?} meets {other:?} at step {step} after {before:?}");
    assert!(orders.iter().any(fits), "{story}: {found:?} is none of {orders:?}");
    assert!(found.told.iter().all(|told| truthful(told)), "{story}: {found:?}");
    assert_eq!(overlapping.read().await, found.live(), "{story}");
}

/// A put that was matched before the resource was created, and written after the document had
/// moved there: the next put or delete makes one of the two.
#[tokio::test]
async fn a_put_that_was_overtaken_by_a_move_lasts_until_the_next_put_or_delete() {
    for next in [Act::Put(9), Act::Delete] {
        let mut overlapping = Overlapping::after(WIDE_ONLY).await;
        let (flare, seen) = (overlapping.slow(), overlapping.model().await);
        let late = tokio::spawn(async move { change(&flare, seen, Act::Put(5)).await });
        // It has been matched, and its write is on its way.
        overlapping.world.pass(CALL + CALL / 2).await;
        overlapping.act(Act::Create(NARROW)).await;
        overlapping.world.calm.put_json(URL, super::model::content(6)).await.unwrap();
        overlapping.world.in_time(late).await.unwrap();
        overlapping.world.settled().await;
        let both = overlapping.model().await;
        assert_eq!(both.kinds[NARROW], Some(Some((-994, false))));
        assert_eq!(both.kinds[WIDE], Some(Some((5, false))), "stored as if it had come first");
        // Not through the model, in which this cannot be.
        match next {
            Act::Delete => overlapping.world.calm.delete_document(URL).await,
            _ => overlapping.world.calm.put_json(URL, super::model::content(9)).await,
        }
        .unwrap();
        overlapping.world.settled().await;
        let after = overlapping.model().await;
        let narrow = (next != Act::Delete).then_some(-991);
        assert_eq!(after.held(), [Some(narrow), None, Some(None)], "{next:?}: {after:?}");
        assert_eq!(overlapping.read().await, narrow.map(|it| (NARROW, it)));
        assert_eq!(after.kinds.len(), KINDS);
    }
}
