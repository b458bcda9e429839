//! A new client gets what is there, and one that lost its data gets it again: all of it, truthfully,
//! while documents change, runtimes die and the client takes its time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::support::{Stored as _, World, few_slots, hook, in_memory, url};
use flare_core::ErrorKind;
use flare_core::model::subscription::BatchOptions;
use flare_core::model::{
    Action, Applied, BackfillProgress, Epoch, JobId, Resource, Subscription, SubscriptionId,
    SubscriptionSpec, Timestamp,
};
use flare_core::port::{DeliveryOutcome, DocumentHead, DocumentStore, Repository, RowStore};
use flare_testkit::intercept::{self, Hooks, RepositoryHooks};
use futures::TryStreamExt;

/// A client that refuses for good what it answers 422 to.
async fn subscribe(world: &World, resource: &Resource, backfill: bool) -> Subscription {
    let spec = hook("a").discard([422]).concurrency(10).backfill(backfill);
    world.calm.create_subscription(resource.id, spec).await.unwrap()
}

async fn backfill_of(world: &World, id: SubscriptionId) -> Option<BackfillProgress> {
    world.flare.subscription_status(id).await.unwrap().backfill
}

async fn resync_of(world: &World, id: SubscriptionId) -> Option<BackfillProgress> {
    world.flare.subscription_status(id).await.unwrap().resync
}

async fn backfilled(world: &World, id: SubscriptionId) {
    world
        .until("the backfill is done", async || {
            backfill_of(world, id).await.is_some_and(|it| it.done)
        })
        .await;
}

async fn resynced(world: &World, id: SubscriptionId) {
    world
        .until("the resync is done", async || resync_of(world, id).await.is_some_and(|it| it.done))
        .await;
}

/// What a client was told, document by document.
fn told(world: &World) -> BTreeMap<String, Vec<Action>> {
    let mut told: BTreeMap<String, Vec<Action>> = BTreeMap::new();
    for request in world.delivery.requests() {
        told.entry(request.request.document.as_str().to_owned())
            .or_default()
            .push(request.request.action);
    }
    told
}

fn ids(world: &World) -> Vec<String> {
    let id = |(name, value): &(std::borrow::Cow<'static, str>, String)| {
        (name == "webhook-id").then(|| value.clone())
    };
    let requests = world.delivery.requests();
    requests.iter().filter_map(|it| it.request.headers.iter().find_map(id)).collect()
}

#[tokio::test]
async fn a_new_client_gets_what_is_there() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..50 {
        world.put(id, 1).await;
    }
    for id in 0..5 {
        world.delete(id).await;
    }
    world.settled().await;
    let subscription = subscribe(&world, &resource, true).await;
    backfilled(&world, subscription.id).await;
    let expected = (5..50).map(|id| (url(id), vec![Action::Create])).collect();
    assert_eq!(told(&world), expected);
    let progress = backfill_of(&world, subscription.id).await.unwrap();
    assert_eq!((progress.scanned, progress.total), (45, 45));

    world.put(7, 2).await;
    world.delete(8).await;
    world.settled().await;
    assert_eq!(told(&world)[&url(7)], [Action::Create, Action::Update]);
    assert_eq!(told(&world)[&url(8)], [Action::Create, Action::Delete]);
}

/// So few were pending that none of them filled a request, and each request waited as long as it may.
#[tokio::test]
async fn a_client_that_takes_many_in_a_request_is_given_as_many() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..500 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let wait = Duration::from_secs(5);
    let spec = SubscriptionSpec::post("http://a.example/hook").concurrency(2);
    let spec = spec.batch(BatchOptions::of(100).wait(wait)).backfill(true);
    let subscription = world.calm.create_subscription(resource.id, spec).await.unwrap();
    world.pass(wait).await;
    assert!(backfill_of(&world, subscription.id).await.is_some_and(|it| it.scanned == 500));
    let requests = world.delivery.requests().len();
    assert_eq!(requests, 5, "each of a hundred");
    backfilled(&world, subscription.id).await;
}

#[tokio::test]
async fn a_later_backfill_brings_what_the_client_does_not_hold() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..10 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let subscription = subscribe(&world, &resource, false).await;
    // Held, refused and given up.
    world.delivery.answer("http://a.example/11", DeliveryOutcome::answered(422));
    world.delivery.answer("http://a.example/12", DeliveryOutcome::answered(404));
    for id in 10..13 {
        world.put(id, 1).await;
    }
    world.settled().await;
    assert_eq!(world.delivery.total(), 3);
    world.flare.backfill(subscription.id).await.unwrap();
    backfilled(&world, subscription.id).await;
    let told = told(&world);
    for id in 0..10 {
        assert_eq!(told[&url(id)], [Action::Create], "{id}");
    }
    assert_eq!(told[&url(10)].len(), 1, "it holds that");
    assert_eq!(
        told[&url(11)],
        [Action::Create, Action::Create],
        "it refused that, and is asked again"
    );
    assert_eq!(told[&url(12)].len(), 1, "dead letters stay for replay");

    // Another one, once the first is done.
    world.delivery.answer("http://a.example/11", DeliveryOutcome::answered(200));
    world.flare.backfill(subscription.id).await.unwrap();
    assert!(!backfill_of(&world, subscription.id).await.unwrap().done);
    backfilled(&world, subscription.id).await;
    assert_eq!(self::told(&world)[&url(11)].len(), 3);
    assert_eq!(world.delivery.total(), 3 + 11 + 1);
}

#[tokio::test]
async fn a_client_that_lost_its_data_gets_it_again() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = subscribe(&world, &resource, false).await;
    world.delivery.answer("http://a.example/3", DeliveryOutcome::answered(404));
    for id in 0..12 {
        world.put(id, 1).await;
    }
    world.delete(11).await;
    world.settled().await;
    let before = world.delivery.total();
    world.delivery.answer("http://a.example/3", DeliveryOutcome::answered(200));
    world.flare.resync(subscription.id, None).await.unwrap();
    resynced(&world, subscription.id).await;
    assert_eq!(world.delivery.total(), before + 11, "gone ones not again");
    for id in 0..11 {
        assert_eq!(told(&world)[&url(id)], [Action::Create, Action::Create], "{id}");
    }
    let ids = ids(&world);
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "it was asked for, so it is no repetition");

    world.flare.resync(subscription.id, Some(&url(1))).await.unwrap();
    resynced(&world, subscription.id).await;
    assert_eq!(world.delivery.total(), before + 11 + 2, "1 and 10");
    world.put(1, 2).await;
    world.settled().await;
    assert_eq!(told(&world)[&url(1)].last(), Some(&Action::Update));
}

#[tokio::test]
async fn few_are_pending_at_a_time() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..3_000 {
        world.put(id, 1).await;
    }
    world.settled().await;
    for id in 0..3_000 {
        world.delivery.hang(format!("http://a.example/{id}"));
    }
    let subscription = subscribe(&world, &resource, true).await;
    world.pass(Duration::from_secs(5)).await;
    let lag = async || {
        world.stores.repository().count_pending(Some(subscription.id)).await.unwrap().count
    };
    assert_eq!(lag().await, 10, "as many as it may have in flight");

    for id in 0..3_000 {
        world.delivery.release(&format!("http://a.example/{id}"));
    }
    let mut most = 0;
    while !backfill_of(&world, subscription.id).await.unwrap().done {
        world.pass(Duration::from_millis(20)).await;
        most = most.max(lag().await);
    }
    assert!(most > 10 && most <= 1_000, "{most}");
    assert_eq!(world.delivery.total(), 3_000);
}

#[tokio::test]
async fn what_the_client_holds_lets_no_more_be_pending() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..3_000 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let spec = hook("a").concurrency(1);
    let subscription = world.calm.create_subscription(resource.id, spec).await.unwrap();
    // In the store's own order all that it holds comes first, and then what it does not.
    let store = world.stores.repository();
    let heads: Vec<DocumentHead> =
        store.scan_documents(resource.id, None).try_collect().await.unwrap();
    let ids = heads.iter().map(|head| head.key.url.as_str().rsplit('/').next().unwrap());
    let ids: Vec<&str> = ids.collect();
    let (held, others) = ids.split_at(2_950);
    for id in held {
        world.put(id, 2).await;
    }
    world.settled().await;
    for id in others {
        world.delivery.hang(format!("http://a.example/{id}"));
    }
    world.flare.backfill(subscription.id).await.unwrap();
    let mut most = 0;
    for _ in 0..100 {
        world.pass(Duration::from_millis(20)).await;
        most = most.max(store.count_pending(Some(subscription.id)).await.unwrap().count);
    }
    let progress = backfill_of(&world, subscription.id).await.unwrap();
    assert!(progress.scanned > 2_950, "it passes by what the client holds: {progress:?}");
    assert_eq!(most, 1, "as many as the client may have in flight");
}

#[tokio::test]
async fn it_is_not_done_while_its_rows_wait_behind_a_long_backlog() {
    let mut world = in_memory(few_slots());
    world.delivery = world.delivery.clone().taking(|_| Duration::from_secs(100_000));
    world.settings.timeout = Duration::from_secs(1_000_000);
    world.start();
    let resource = world.users().await;
    for id in 0..5 {
        world.put(format!("there{id}"), 1).await;
    }
    world.settled().await;
    let subscription = subscribe(&world, &resource, false).await;
    for id in 0..10_100 {
        world.put(id, 1).await;
    }
    let store = world.stores.repository();
    let pending = async |count| {
        let lag = async || store.count_pending(Some(subscription.id)).await.unwrap().count;
        world.until("all are pending", async || lag().await == count).await;
    };
    pending(10_100).await;
    world.pass(Duration::from_secs(1)).await;
    world.flare.backfill(subscription.id).await.unwrap();
    pending(10_105).await;
    world.pass(Duration::from_secs(5)).await;
    assert_eq!(backfill_of(&world, subscription.id).await.unwrap().scanned, 10_105);
    world.crash().await;
    world.start();
    world.pass(Duration::from_secs(30)).await;
    let progress = backfill_of(&world, subscription.id).await.unwrap();
    assert!(!progress.done, "its five documents are still to be told");
}

#[tokio::test]
async fn settled_waits_for_it() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..500 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let subscription = subscribe(&world, &resource, true).await;
    let limit = Duration::from_secs(600);
    world.in_time(world.flare.settled(limit)).await.unwrap();
    assert_eq!(world.delivery.total(), 500);

    world.flare.pause(subscription.id).await.unwrap();
    world.flare.resync(subscription.id, None).await.unwrap();
    let limit = Duration::from_secs(5);
    let late = world.in_time(world.flare.settled(limit)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    assert!(late.to_string().contains("1 backfill"), "{late}");
    assert!(world.flare.cancel_resync(subscription.id).await.unwrap());
    world.in_time(world.flare.settled(limit)).await.unwrap();
}

#[tokio::test]
async fn whatever_dies_everything_is_told_once() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..400 {
        world.put(id, 1).await;
    }
    world.settled().await;
    let subscription = subscribe(&world, &resource, true).await;
    for step in 0..40 {
        world.pass(Duration::from_millis(35)).await;
        // Changed, deleted and made meanwhile, on both sides of the cursor.
        world.put(step * 7, 2).await;
        world.delete(step * 5 + 1).await;
        world.put(1_000 + step, 1).await;
        world.crash().await;
        world.start();
    }
    world
        .until("the backfill is done", async || {
            backfill_of(&world, subscription.id).await.is_some_and(|it| it.done)
        })
        .await;
    world.settled().await;
    let store = world.stores.repository();
    for id in (0..400).chain(1_000..1_040) {
        let document = world.flare.document(&url(id)).await;
        let last = told(&world).get(&url(id)).and_then(|it| it.last().copied());
        match document {
            Ok(_) => assert!(matches!(last, Some(Action::Create | Action::Update)), "{id}"),
            Err(_) => assert!(matches!(last, None | Some(Action::Delete)), "{id}: {last:?}"),
        }
    }
    assert_eq!(store.count_pending(None).await.unwrap().count, 0);
    // What was in flight when the runtime died is told again, under the same id.
    let ids = ids(&world);
    let different: BTreeSet<&String> = ids.iter().collect();
    assert!(ids.len() - different.len() <= 40 * 10, "{} of {}", different.len(), ids.len());
}

#[tokio::test]
async fn it_is_held_cancelled_and_refused() {
    let mut world = in_memory(few_slots());
    let resource = world.users().await;
    for id in 0..30 {
        world.put(id, 1).await;
    }
    world.start();
    world.settled().await;
    let subscription = subscribe(&world, &resource, false).await;
    let id = subscription.id;
    assert_eq!(backfill_of(&world, id).await, None);
    assert!(!world.flare.cancel_backfill(id).await.unwrap(), "there is none");

    world.flare.pause(id).await.unwrap();
    world.flare.backfill(id).await.unwrap();
    world.flare.backfill(id).await.unwrap();
    world.pass(Duration::from_secs(30)).await;
    assert_eq!(world.delivery.total(), 0);
    let held = backfill_of(&world, id).await.unwrap();
    assert_eq!((held.scanned, held.done), (0, false));
    assert!(world.flare.cancel_backfill(id).await.unwrap());
    assert!(!world.flare.cancel_backfill(id).await.unwrap());
    world.flare.resume(id).await.unwrap();
    world.pass(Duration::from_secs(30)).await;
    assert_eq!((world.delivery.total(), backfill_of(&world, id).await), (0, None));

    world.flare.pause(id).await.unwrap();
    world.flare.resync(id, Some(&url(1))).await.unwrap();
    world.flare.resync(id, Some(&url(1))).await.unwrap();
    let other = world.flare.resync(id, None).await.unwrap_err();
    assert_eq!((other.kind(), other.field()), (ErrorKind::Conflict, Some("prefix")));
    world.flare.resume(id).await.unwrap();
    resynced(&world, id).await;
    assert_eq!(world.delivery.total(), 11);

    let nobody = SubscriptionId::from_bytes([9; 16]);
    for refused in [
        world.flare.backfill(nobody).await.unwrap_err(),
        world.flare.resync(nobody, None).await.unwrap_err(),
        world.flare.cancel_resync(nobody).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::NotFound);
    }
}

/// Claims a job under a greater epoch, as another node does, just before it is finished; once.
#[derive(Debug, Default)]
struct TakesItFirst(AtomicBool);

impl Hooks for TakesItFirst {}

#[async_trait]
impl RepositoryHooks for TakesItFirst {
    async fn finish_job(
        &self,
        inner: &dyn Repository,
        epoch: Epoch,
        id: JobId,
    ) -> flare_core::Result<Applied> {
        if !self.0.swap(true, Ordering::Relaxed) {
            let greater = inner.next_epoch().await?;
            let until = greater.at + Duration::from_secs(1);
            inner.claim_job(greater.epoch, id, Timestamp::MAX, until).await?;
        }
        inner.finish_job(epoch, id).await
    }
}

/// It was once said that there was none to cancel, and it went on.
#[tokio::test]
async fn one_that_a_node_takes_just_then_is_cancelled_all_the_same() {
    let mut world = in_memory(few_slots())
        .behind(|repository, _| intercept::repository(repository, TakesItFirst::default()));
    let resource = world.users().await;
    world.put(1, 1).await;
    let subscription = subscribe(&world, &resource, false).await;
    world.flare.resync(subscription.id, None).await.unwrap();
    assert!(world.flare.cancel_resync(subscription.id).await.unwrap(), "there was one");
    assert_eq!(resync_of(&world, subscription.id).await, None);
    world.start();
    world.settled().await;
}

#[tokio::test]
async fn a_deleted_subscription_ends_its_backfill() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    for id in 0..30 {
        world.put(id, 1).await;
    }
    world.settled().await;
    for id in 0..30 {
        world.delivery.hang(format!("http://a.example/{id}"));
    }
    let subscription = subscribe(&world, &resource, true).await;
    world.pass(Duration::from_secs(1)).await;
    world.flare.delete_subscription(subscription.id).await.unwrap();
    world.until("nothing is left of it", async || world.removals().await.is_empty()).await;
    assert_eq!(world.stores.repository().count_pending(None).await.unwrap().count, 0);
}
