//! A put or delete that dies at any call of the store: what it began is finished, or never was.

use std::time::Duration;

use super::model::{Act, KINDS, Model, NARROW, WIDE};
use super::world::{CALL, Overlapping, change};

/// More than the calls of any put or delete, in halves of one.
const STEPS: u32 = 18;

#[tokio::test]
async fn a_put_that_dies_half_way_is_finished_by_the_reconciler() {
    let before = [Act::Create(WIDE), Act::Put(1), Act::Create(1), Act::Put(2), Act::Create(NARROW)];
    for length in [3, 5] {
        for act in [Act::Put(7), Act::Put(2), Act::Delete] {
            for step in 0..STEPS {
                for while_it_runs in [true, false] {
                    die(&before[..length], act, step, while_it_runs).await;
                }
            }
        }
    }
}

/// Where the document stands in between, readers and deletes are not led astray.
#[tokio::test]
async fn a_put_that_died_half_way_is_found_and_deleted() {
    let before = [Act::Create(WIDE), Act::Put(1), Act::Create(NARROW)];
    let mut half_way = 0;
    for step in 0..STEPS {
        let mut overlapping = Overlapping::after(&before).await;
        overlapping.world.crash().await;
        abort(&overlapping, Act::Put(2), step).await;
        let model = overlapping.model().await;
        let live = |kind: usize| matches!(model.kinds[kind], Some(Some((_, false))));
        half_way += u32::from(live(NARROW) && live(WIDE));
        let holder = if live(NARROW) { NARROW } else { WIDE };
        assert_eq!(overlapping.read().await.unwrap().0, holder, "{step}");
        let deleted = overlapping.world.calm.delete_document(super::world::URL).await;
        assert_eq!(deleted.unwrap(), flare_core::model::DocumentChange::Deleted, "{step}");
        assert_eq!(overlapping.read().await, None, "{step}");
        overlapping.world.start();
        overlapping.world.settled().await;
        let after = overlapping.model().await;
        assert_eq!(after.live(), None, "{step}: {after:?}");
        assert_eq!(after.held(), [Some(None), None, Some(None)], "{step}: {after:?}");
    }
    assert!(half_way > 0, "no crash fell between the two writes");
}

/// A put that died half way, and a resource that is more specific still: the next put leaves both that came before.
#[tokio::test]
async fn a_move_out_of_a_move_that_died_leaves_both_resources() {
    let before = [Act::Create(WIDE), Act::Put(1), Act::Create(1)];
    let mut half_way = 0;
    for step in 0..STEPS {
        let mut overlapping = Overlapping::after(&before).await;
        overlapping.world.crash().await;
        abort(&overlapping, Act::Put(2), step).await;
        let model = overlapping.model().await;
        let live = |kind: usize| matches!(model.kinds[kind], Some(Some((_, false))));
        half_way += u32::from(live(1) && live(WIDE));
        overlapping.act(Act::Create(NARROW)).await;
        overlapping.act(Act::Put(3)).await;
        overlapping.world.start();
        overlapping.world.pass(Duration::from_secs(12)).await;
        overlapping.world.settled().await;
        let after = overlapping.model().await;
        assert_eq!(after.live().map(|(kind, _)| kind), Some(NARROW), "{step}: {after:?}");
        // The client of the first was told to create it, and that it is gone.
        assert_eq!(after.held()[WIDE], Some(None), "{step}: {after:?}");
    }
    assert!(half_way > 0, "no crash fell between the two writes");
}

/// A second put that looked before the first one was written, and was written after it had died:
/// what it finds unchanged is half moved.
#[tokio::test]
async fn a_put_that_meets_one_that_died_finishes_its_move() {
    let before = [Act::Create(WIDE), Act::Put(1), Act::Create(NARROW)];
    let done = Model::after(&[&before[..], &[Act::Put(2)]].concat());
    for later in 0..6 {
        for step in 0..STEPS {
            let overlapping = Overlapping::after(&before).await;
            let seen = overlapping.model().await;
            let put =
                |flare, seen| tokio::spawn(async move { change(&flare, seen, Act::Put(2)).await });
            let first = put(overlapping.slow(), seen.clone());
            overlapping.world.pass(CALL / 4 * later).await;
            let second = put(overlapping.slow(), seen);
            overlapping.world.pass(CALL / 2 * step).await;
            first.abort();
            let _ = first.await;
            overlapping.world.in_time(second).await.unwrap();
            let live = overlapping.model().await.live();
            assert_eq!(live, done.live(), "when it was answered, {later}, {step}");
            overlapping.world.settled().await;
            assert_eq!(overlapping.model().await, done, "{later}, {step}");
        }
    }
}

/// Starts the act on a slow store and drops it so many half calls later.
async fn abort(overlapping: &Overlapping, act: Act, step: u32) {
    let (flare, seen) = (overlapping.slow(), overlapping.model().await);
    let put = tokio::spawn(async move { change(&flare, seen, act).await });
    overlapping.world.pass(CALL / 2 * step).await;
    put.abort();
    let _ = put.await;
}

async fn die(before: &[Act], act: Act, step: u32, while_it_runs: bool) {
    let mut overlapping = Overlapping::after(before).await;
    if !while_it_runs {
        overlapping.world.crash().await;
    }
    abort(&overlapping, act, step).await;
    if !while_it_runs {
        overlapping.world.start();
    }
    // Long enough for the reconciler, whoever else had nothing to do.
    overlapping.world.pass(Duration::from_secs(12)).await;
    overlapping.world.settled().await;
    let (found, never) = (overlapping.model().await, Model::after(before));
    let done = Model::after(&[before, &[act]].concat());
    assert!(
        found == never || found == done,
        "{act:?} after {before:?} died at step {step}: {found:?} is neither {never:?} nor {done:?}"
    );
    assert_eq!(overlapping.read().await, found.live());
    assert_eq!(found.kinds.len(), KINDS);
}
