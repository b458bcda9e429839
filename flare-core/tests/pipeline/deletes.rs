//! What was deleted is gone for everybody at once, and what it leaves behind is removed whatever
//! crashes meanwhile.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Stored as _, World, few_slots, in_memory, url};
use crate::wall_clock::SetClock;
use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_core::model::{
    DocumentKey, DocumentUrl, Epoch, IdSource, Job, JobKind, LaneId, LaneState, Placement,
    Revision, Spread, Subscription, SubscriptionStatus, Version,
};
use flare_core::port::{
    Clock, DeliveryOutcome, JobStore, Page, Queue, QueueName, RowStore, SubscriptionStore,
};
use flare_core::{ErrorKind, Flare};
use flare_testkit::{FaultPlan, FaultyQueue, FaultyRepository};
use futures::TryStreamExt;

/// More than one turn of the jobs.
const A_TURN: Duration = Duration::from_secs(5);
/// More than the time between both passes of a removal.
const BOTH_PASSES: Duration = Duration::from_secs(16 * 60);

/// What a spread of documents writes that read the subscription before it was deleted.
async fn spread_late(world: &World, subscription: &Subscription, ids: Range<u32>) {
    let spread = |id| {
        Spread::new(
            subscription.id,
            subscription.generation,
            DocumentKey::new(subscription.resource, DocumentUrl::parse(&url(id)).unwrap()),
            Version::live(Revision::new(1)),
        )
    };
    world.stores.repository().spread_rows(ids.map(spread).collect()).await.unwrap();
}

async fn pending(world: &World, subscription: &Subscription) -> u64 {
    world.stores.repository().count_pending(Some(subscription.id)).await.unwrap().count
}

/// Settings under which both passes of a removal are a minute apart.
fn brief() -> Settings {
    let mut settings = few_slots();
    settings.task_lifetime = Duration::from_secs(60);
    settings
}

#[tokio::test]
async fn a_deleted_subscription_is_gone_at_once_and_leaves_nothing_behind() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    let other = world.subscribe(&resource, "b").await;
    world.delivery.answer("http://a.example/1", DeliveryOutcome::answered(500));
    for id in 1..=3 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let store = world.stores.repository();
    let mut state = LaneState::new(LaneId::new(gone.id, 0));
    state.delivered = 2;
    let epoch = store.next_epoch().await.unwrap().epoch;
    store.store_lanes(epoch, vec![state]).await.pop().unwrap().unwrap();

    world.flare.delete_subscription(gone.id).await.unwrap();
    let unknown = world.flare.subscription(gone.id).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert_eq!(world.flare.subscriptions(resource.id, Page::new(30, 0)).await.unwrap().total, 1);
    let again = world.flare.delete_subscription(gone.id).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound, "{again}");
    assert!(again.to_string().contains(&gone.id.to_string()), "{again}");
    // Its url is free at once.
    let heir = world.subscribe(&resource, "a").await;

    world.pass(A_TURN).await;
    for id in 1..=3 {
        assert_eq!(world.row(gone.id, id).await, None);
        assert!(world.row(other.id, id).await.is_some(), "somebody else's");
    }
    let dead = store.dead_letters(gone.id, Page::new(30, 0)).await.unwrap();
    assert_eq!(dead.total, 0);
    assert!(world.stored(gone.id).await.is_some(), "kept for the second pass");
    world.pass(BOTH_PASSES).await;
    assert_eq!(world.stored(gone.id).await, None);
    assert_eq!(store.lanes(gone.id).await.unwrap().items, []);
    assert!(world.removals().await.is_empty());

    world.put(4, 1).await;
    world.settled().await;
    assert!(world.row(heir.id, 4).await.is_some());
    assert_eq!(world.row(gone.id, 4).await, None);
}

#[tokio::test]
async fn nothing_is_told_to_a_deleted_subscription() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    world.settled().await;
    world.flare.delete_subscription(gone.id).await.unwrap();
    world.put(1, 2).await;
    world.put(2, 1).await;
    world.pass(BOTH_PASSES).await;
    assert_eq!(world.delivery.total(), 1);
}

#[tokio::test]
async fn the_second_pass_removes_what_a_late_spread_made_anew() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    world.settled().await;
    world.flare.delete_subscription(gone.id).await.unwrap();
    world.pass(A_TURN).await;
    assert_eq!(world.row(gone.id, 1).await, None);
    spread_late(&world, &gone, 1..2).await;
    world.pass(A_TURN).await;
    assert!(world.row(gone.id, 1).await.is_some(), "nobody looks before the task must be over");
    world.pass(BOTH_PASSES).await;
    assert_eq!(world.row(gone.id, 1).await, None);
    assert_eq!(world.stores.repository().count_pending(None).await.unwrap().count, 0);
    assert_eq!(world.stored(gone.id).await, None);
}

#[tokio::test]
async fn a_removal_goes_on_where_a_dropped_runtime_left_it() {
    // Every call takes its time, so that a removal can be dropped in the middle.
    let mut world = in_memory(brief()).behind(|repository, clock| {
        let late = FaultyRepository::new(repository, FaultPlan::seeded(1));
        late.delaying(1.0, Duration::from_millis(200), clock)
    });
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    spread_late(&world, &gone, 0..3_500).await;
    world.in_time(world.flare.delete_subscription(gone.id)).await.unwrap();
    let mut before = pending(&world, &gone).await;
    assert_eq!(before, 3_500);
    let mut crashes = 0;
    while before > 0 {
        world.start();
        world.until("some are removed", async || pending(&world, &gone).await < before).await;
        world.crash().await;
        before = pending(&world, &gone).await;
        crashes += 1;
    }
    assert!(crashes > 2, "it was dropped in the middle {crashes} times");
    assert!(world.stored(gone.id).await.is_some());
    world.start();
    world.pass(Duration::from_secs(240)).await;
    assert_eq!(world.stored(gone.id).await, None);
    assert!(world.removals().await.is_empty());
}

#[tokio::test]
async fn a_long_removal_does_not_keep_a_short_one_waiting() {
    let mut world = in_memory(brief()).behind(|repository, clock| {
        let late = FaultyRepository::new(repository, FaultPlan::seeded(1));
        late.delaying(1.0, Duration::from_millis(100), clock)
    });
    let resource = world.users().await;
    let long = world.subscribe(&resource, "a").await;
    let short = world.subscribe(&resource, "b").await;
    spread_late(&world, &long, 0..60_000).await;
    spread_late(&world, &short, 0..10).await;
    world.calm.delete_subscription(long.id).await.unwrap();
    world.start();
    world.until("it is begun", async || pending(&world, &long).await < 60_000).await;
    world.calm.delete_subscription(short.id).await.unwrap();
    world.until("the short one is over", async || pending(&world, &short).await == 0).await;
    assert!(pending(&world, &long).await > 0, "the long one is not");
    world.until("both are over", async || world.removals().await.is_empty()).await;
    assert_eq!(pending(&world, &long).await, 0);
}

#[tokio::test]
async fn a_removal_nobody_asked_for_in_time_is_asked_for_by_the_lanes() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    world.settled().await;
    // Somebody marked it, and died.
    let store = world.stores.repository();
    let mut marked = world.stored(gone.id).await.unwrap();
    marked.status = SubscriptionStatus::Deleting;
    store.replace_subscription(marked.generation, marked).await.unwrap();
    world.until("it is removed", async || world.stored(gone.id).await.is_none()).await;
    assert_eq!(world.row(gone.id, 1).await, None);
}

#[tokio::test]
async fn what_is_in_use_is_never_removed_and_strange_jobs_stop_nobody() {
    let mut world = in_memory(few_slots());
    let resource = world.users().await;
    let (kept, gone) =
        (world.subscribe(&resource, "a").await, world.subscribe(&resource, "b").await);
    world.start();
    world.put(1, 1).await;
    world.settled().await;
    let store = world.stores.repository();
    let ids = IdSource::seeded(99);
    let now = world.clock.now();
    let job = |kind, subject: String| Job::new(ids.next(now).into(), kind, subject, now);
    for strange in [
        job(JobKind::Migrate, "of a newer version".to_owned()),
        job(JobKind::RemoveSubscription, "no id".to_owned()),
        job(JobKind::RemoveSubscription, kept.id.to_string()),
    ] {
        assert!(store.insert_job(strange).await.unwrap());
    }
    world.flare.delete_subscription(gone.id).await.unwrap();
    world.pass(BOTH_PASSES).await;
    assert_eq!(world.stored(gone.id).await, None);
    assert!(world.row(kept.id, 1).await.is_some());
    let left: Vec<String> = world.removals().await.into_iter().map(|job| job.subject).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!left.contains(&kept.id.to_string()));
}

#[tokio::test]
async fn what_is_due_is_told_by_the_store_s_clock() {
    let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    spread_late(&world, &gone, 1..2).await;
    world.flare.delete_subscription(gone.id).await.unwrap();
    let clock = Arc::new(SetClock::new(&world.clock, -5 * 3_600));
    world.start_as(world.builder().clock(clock));
    world.pass(A_TURN).await;
    assert_eq!(world.row(gone.id, 1).await, None);
    let waits = world.removals().await[0].due - world.clock.now();
    assert!(waits > Duration::from_secs(14 * 60) && waits < Duration::from_secs(16 * 60));
    world.pass(BOTH_PASSES).await;
    assert_eq!(world.stored(gone.id).await, None);
}

#[tokio::test]
async fn two_runtimes_share_jobs_and_one_goes_on_where_the_other_died() {
    let mut world = in_memory(few_slots());
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    world.start();
    world.flare.delete_subscription(gone.id).await.unwrap();
    world.pass(A_TURN).await;
    let taken = world.removals().await.remove(0);
    assert!(taken.epoch > Epoch::ZERO);
    // Another one of a greater epoch took the job, and died.
    let store = world.stores.repository();
    let greater = store.next_epoch().await.unwrap().epoch;
    let soon = world.clock.now() + Duration::from_secs(60);
    store.advance_job(greater, taken.id, taken.cursor, soon).await.unwrap();
    world.pass(Duration::from_secs(59)).await;
    assert_eq!(world.removals().await[0].epoch, greater, "left alone for as long as it is its");
    world.until("it is removed", async || world.removals().await.is_empty()).await;
    assert_eq!(world.stored(gone.id).await, None);
}

#[tokio::test]
async fn deletions_are_carried_out_whatever_fails_and_crashes() {
    for seed in 0..20 {
        let faults = FaultPlan::seeded(seed).with_before(0.2).with_after(0.2);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = in_memory(brief()).behind(|repository, clock| {
            let faulty = FaultyRepository::new(repository, faults.clone());
            faulty.delaying(0.5, Duration::from_millis(700), clock)
        });
        let resource = world.users().await;
        let gone = [world.subscribe(&resource, "a").await, world.subscribe(&resource, "b").await];
        for subscription in &gone {
            spread_late(&world, subscription, 0..20).await;
        }
        world.start();
        for subscription in &gone {
            // An error leaves open whether it is deleted; once it is, it is not found.
            loop {
                let deleted = world.in_time(world.flare.delete_subscription(subscription.id));
                match deleted.await {
                    Ok(()) => break,
                    Err(error) if error.kind() == ErrorKind::NotFound => break,
                    Err(_) => {}
                }
            }
            world.pass(Duration::from_millis(random.u64(..4_000))).await;
            world.crash().await;
            world.start();
        }
        for _ in 0..6 {
            world.pass(Duration::from_secs(random.u64(..40))).await;
            world.crash().await;
            world.start();
        }
        faults.heal();
        world
            .until("all is removed", async || {
                let mut left = world.removals().await.len();
                for subscription in &gone {
                    left += usize::from(world.stored(subscription.id).await.is_some());
                }
                left == 0
            })
            .await;
        let pending = world.stores.repository().count_pending(None).await.unwrap();
        assert_eq!(pending.count, 0, "seed {seed}");
        world.crash().await;
    }
}

#[tokio::test]
async fn a_subscription_is_not_removed_before_its_lanes_have_ended() {
    let mut settings = brief();
    settings.placement = Placement::Isolated;
    settings.sweep_every = Duration::from_secs(20 * 60);
    let mut world = in_memory(settings);
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    // Nobody hears of the deletion until the next sweep.
    let queue = FaultyQueue::new(world.stores.queue(), FaultPlan::seeded(1)).losing(1.0);
    world.backend.queue = Some(Arc::new(queue));
    world.start();
    world.until("its lane works", async || world.flare.node().lanes == 1).await;

    // By somebody whose word reaches no node.
    let mut elsewhere = world.backend.clone();
    elsewhere.lease = Some(MemoryBackend::new().lease());
    let delivery = Arc::new(world.delivery.clone());
    let (unheard, runtime) = Flare::builder(elsewhere).delivery(delivery).build().unwrap();
    runtime.unused();
    unheard.delete_subscription(gone.id).await.unwrap();
    world.pass(10 * Duration::from_secs(60)).await;
    assert_eq!(world.flare.node().lanes, 1, "its lane has not heard of it");
    assert!(world.stored(gone.id).await.is_some(), "what a lane still works is kept");
    world.until("it is removed", async || world.stored(gone.id).await.is_none()).await;
    assert_eq!(world.flare.node().lanes, 0);
    world.pass(BOTH_PASSES).await;
    assert_eq!(world.stores.repository().lanes(gone.id).await.unwrap().items, []);
    let queues: Vec<QueueName> = world.stores.queue().list().try_collect().await.unwrap();
    assert!(!queues.iter().any(|queue| matches!(queue, QueueName::Lane(_))), "{queues:?}");
}
