//! A client is told of a document no oftener than it wants, of the newest version then, and of the last
//! one certainly.

use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory, url};
use flare_core::model::{Action, Timestamp};
use flare_core::port::{Clock, DeliveryOutcome};

const INTERVAL: Duration = Duration::from_secs(10);

/// When a document was told, in seconds from `start`, and in which version.
fn told(world: &World, id: u32, start: Timestamp) -> Vec<(u64, i64, Action)> {
    let requests = world.delivery.requests();
    let its = requests.iter().filter(|it| it.request.document.as_str() == url(id));
    its.map(|it| {
        ((it.at - start).as_secs(), it.request.version.revision().get(), it.request.action)
    })
    .collect()
}

#[tokio::test]
async fn a_document_that_never_rests_is_told_once_an_interval() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let spec = hook("a").min_interval(INTERVAL);
    world.calm.create_subscription(resource.id, spec).await.unwrap();
    let start = world.clock.now();
    for rev in 0..350 {
        world.put(1, rev).await;
        if rev == 120 {
            world.put(2, 1).await;
        }
        world.pass(Duration::from_millis(100)).await;
    }
    world.settled().await;
    let told_of = told(&world, 1, start);
    assert_eq!(told_of.len(), 5, "{told_of:?}");
    assert!(told_of.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 10), "{told_of:?}");
    assert_eq!(told_of.last().map(|it| it.1), Some(349), "the last one certainly");
    assert_eq!(told(&world, 2, start).len(), 1, "others do not wait for it");
}

#[tokio::test]
async fn a_deletion_waits_too_and_survives_a_crash() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let spec = hook("a").min_interval(INTERVAL);
    let subscription = world.calm.create_subscription(resource.id, spec).await.unwrap();
    let start = world.clock.now();
    world.put(1, 1).await;
    world.settled().await;
    world.delete(1).await;
    world.pass(Duration::from_secs(3)).await;
    world.crash().await;
    world.start();
    world.flare.retry_now(subscription.id).await.unwrap();
    world.settled().await;
    let told = told(&world, 1, start);
    assert_eq!(told.iter().map(|it| it.2).collect::<Vec<_>>(), [Action::Create, Action::Delete]);
    assert!(told[1].0 - told[0].0 >= 10, "{told:?}");
}

#[tokio::test]
async fn a_failure_follows_the_policy() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let spec = flare_core::model::SubscriptionSpec::post("http://a.example/{id}");
    let spec = spec.min_interval(Duration::from_secs(3_000));
    world.calm.create_subscription(resource.id, spec).await.unwrap();
    let start = world.clock.now();
    world.delivery.answer_next("http://a.example/1", DeliveryOutcome::answered(404));
    world.put(1, 1).await;
    world.settled().await;
    let told_of = told(&world, 1, start);
    assert_eq!(told_of.len(), 2);
    assert!(told_of[1].0 < 60, "retries do not wait for the interval: {told_of:?}");
}

#[tokio::test]
async fn a_hundred_changes_a_second_are_one_notification_an_interval() {
    const LONG: Duration = Duration::from_secs(30);
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let spec = hook("a").min_interval(INTERVAL);
    world.calm.create_subscription(resource.id, spec).await.unwrap();
    let start = world.clock.now();
    let mut put_at = Vec::new();
    for rev in 0..i64::try_from(LONG.as_millis() / 10).unwrap() {
        put_at.push(world.clock.now());
        world.put(1, rev).await;
        world.pass(Duration::from_millis(10)).await;
    }
    let before = told(&world, 1, start).len();
    assert!((3..=4).contains(&before), "once in ten of thirty seconds: {before}");
    for it in world.delivery.requests() {
        let revision = usize::try_from(it.request.version.revision().get()).unwrap();
        let age = it.at - put_at[revision];
        assert!(age <= Duration::from_millis(20), "the newest one then: {revision} is {age:?} old");
    }
    world.settled().await;
    let told_of = told(&world, 1, start);
    assert!(told_of.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 10), "{told_of:?}");
    assert_eq!(told_of.last().map(|it| it.1), Some(2_999), "the last one certainly");
}

#[tokio::test]
async fn a_resync_waits_for_the_interval_too() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let spec = hook("a").min_interval(INTERVAL);
    let subscription = world.calm.create_subscription(resource.id, spec).await.unwrap();
    let start = world.clock.now();
    world.put(1, 1).await;
    world.settled().await;
    world.pass(Duration::from_secs(2)).await;
    world.flare.resync(subscription.id, None).await.unwrap();
    world.pass(Duration::from_secs(5)).await;
    assert_eq!(told(&world, 1, start).len(), 1, "it was told a moment ago");
    world.pass(Duration::from_secs(5)).await;
    let told = told(&world, 1, start);
    assert_eq!(told.iter().map(|it| it.2).collect::<Vec<_>>(), [Action::Create, Action::Create]);
    assert!(told[1].0 - told[0].0 >= 10, "{told:?}");
}
