//! A client that wants many notifications in one request is told of different documents at once, each of
//! which is settled, tried again or given up by itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_core::model::subscription::{
    BatchOptions, RetryPolicy, SubscriptionBuilder, SubscriptionReport,
};
use flare_core::model::{Present, Subscription, SubscriptionSpec, SubscriptionStatus};
use flare_core::port::{
    Clock, DeliveryOutcome, DeliveryRequest, FailureKind, Page, Reply, RetryAfter,
};
use flare_testkit::RecordingDelivery;
use serde_json::{Value, json};

use crate::support::{World, few_slots, in_memory, url};

const HOOK: &str = "http://a.example/hook";
const SECOND: Duration = Duration::from_secs(1);

/// Up to ten at once, whatever is there; given up after three attempts.
fn tens() -> SubscriptionBuilder {
    let retry = RetryPolicy::builder()
        .num_retries(2)
        .min_delay_target(Duration::from_secs(1))
        .max_delay_target(Duration::from_secs(1));
    SubscriptionSpec::post(HOOK).retry(retry.build().unwrap()).batch(BatchOptions::of(10))
}

/// A client that wants this, before anything has happened. No node works yet.
async fn world(spec: SubscriptionBuilder) -> (World, Subscription) {
    let world = in_memory(few_slots());
    let users = world.users().await;
    let subscription = world.calm.create_subscription(users.id, spec).await.unwrap();
    (world, subscription)
}

/// Puts users, each once.
async fn put(world: &World, ids: impl IntoIterator<Item = u32>) {
    for id in ids {
        world.put(id, 1).await;
    }
}

/// A client that answers by this.
fn answering(
    world: &mut World,
    answer: impl Fn(&DeliveryRequest) -> DeliveryOutcome + Send + Sync + 'static,
) {
    let clock = Arc::new(world.clock.clone());
    world.delivery = RecordingDelivery::new(clock).answering(answer);
}

/// A success that says something.
fn saying(body: impl Into<Bytes>) -> DeliveryOutcome {
    let mut outcome = DeliveryOutcome::answered(200);
    outcome.reply = Reply::Answered { status: 200, retry_after: None, excerpt: body.into() };
    outcome
}

/// What a request tells: of which users, by which ids.
fn told(request: &DeliveryRequest) -> Vec<(u32, String)> {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let notifications = body["notifications"].as_array().unwrap();
    let user = |it: &Value| it["id"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
    let id = |it: &Value| it["webhookId"].as_str().unwrap().to_owned();
    notifications.iter().map(|it| (user(it), id(it))).collect()
}

/// Which users each request told of.
fn users(world: &World) -> Vec<Vec<u32>> {
    let users = |request: &DeliveryRequest| {
        let mut users: Vec<u32> = told(request).into_iter().map(|(user, _)| user).collect();
        users.sort_unstable();
        users
    };
    world.delivery.requests().iter().map(|it| users(&it.request)).collect()
}

fn header<'a>(request: &'a DeliveryRequest, name: &str) -> Option<&'a str> {
    let header = request.headers.iter().find(|(other, _)| other == name);
    header.map(|(_, value)| value.as_str())
}

fn webhook_id(request: &DeliveryRequest) -> String {
    header(request, "webhook-id").unwrap().to_owned()
}

/// How it is doing, with everything counted.
async fn status(world: &World, subscription: &Subscription) -> SubscriptionReport {
    world.in_time(world.flare.settled(60 * SECOND)).await.unwrap();
    world.flare.subscription_status(subscription.id).await.unwrap()
}

/// The id of a user among what a request tells.
fn id_of(request: &DeliveryRequest, user: u32) -> Option<String> {
    told(request).into_iter().find(|(other, _)| *other == user).map(|(_, id)| id)
}

#[tokio::test]
async fn many_documents_are_told_in_one_request() {
    let (mut world, subscription) = world(tens().data("tenant", "t/{id}")).await;
    put(&world, 0..25).await;
    world.start();
    world.settled().await;
    let requests = world.delivery.requests();
    let mut all: Vec<u32> = users(&world).concat();
    all.sort_unstable();
    assert_eq!(all, (0..25).collect::<Vec<_>>(), "each once");
    assert!(requests.len() <= 4, "{} requests", requests.len());
    let request = &requests[0].request;
    assert_eq!((request.url.as_str(), header(request, "flare-action")), (HOOK, Some("batch")));
    assert_eq!(header(request, "flare-revision"), None);
    assert_eq!(header(request, "content-type"), Some("application/json"));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let one = &body["notifications"][0];
    let (user, id) = told(request).swap_remove(0);
    assert_eq!(one["id"], url(user));
    assert_eq!((&one["action"], &one["revision"]), (&json!("create"), &json!(1)));
    assert_eq!(
        (&one["data"]["tenant"], &one["document"]),
        (&json!(format!("t/{user}")), &json!({"rev":1}))
    );
    assert!(id.starts_with("msg_") && id_of(request, user) == Some(id));
    let status = status(&world, &subscription).await;
    assert_eq!((status.delivered, status.failed, status.lag), (25, 0, 0));
}

#[tokio::test]
async fn what_the_client_names_is_settled_by_itself() {
    let (mut world, subscription) = world(tens()).await;
    answering(&mut world, |request| {
        let failed: Vec<String> =
            id_of(request, 3).into_iter().chain(["msg_x".to_owned()]).collect();
        let discarded: Vec<String> = id_of(request, 5).into_iter().collect();
        saying(json!({"failed": failed, "discarded": discarded}).to_string())
    });
    put(&world, 0..8).await;
    world.start();
    world.settled().await;
    // Whoever was named as failed is tried again by the policy, and then given up; nobody else is.
    let all = users(&world);
    assert_eq!(all[0].len(), 8);
    assert_eq!(all[1..], [[3], [3]]);
    let dead = world.flare.dead_letters(subscription.id, Page::new(10, 0)).await.unwrap();
    assert_eq!(dead.items.len(), 1);
    assert_eq!((dead.items[0].attempts, dead.items[0].last_status), (3, Some(200)));
    assert_eq!(dead.items[0].last_error.as_deref(), Some("the client named it as failed"));
    let status = status(&world, &subscription).await;
    assert_eq!((status.delivered, status.discarded, status.failed), (6, 1, 3));
    let row = world.row(subscription.id, 5).await.unwrap();
    assert!(!row.is_pending() && row.present != Present::Yes, "it was refused: {row:?}");
}

#[tokio::test]
async fn a_poisonous_document_is_alone_in_the_end_and_the_rest_gets_through() {
    for status in [500, 422, 404] {
        let (mut world, subscription) = world(tens().discard([422])).await;
        answering(&mut world, move |request| {
            let poisoned = id_of(request, 6).is_some();
            DeliveryOutcome::answered(if poisoned { status } else { 200 })
        });
        put(&world, 0..10).await;
        world.start();
        world
            .until("all but one", async || {
                let report = world.flare.subscription_status(subscription.id).await.unwrap();
                report.delivered == 9
            })
            .await;
        let before = world.row(subscription.id, 6).await.unwrap().attempts;
        assert!(before <= 1, "{status}: in company it uses up no attempt, but {before}");
        world.settled().await;
        let row = world.row(subscription.id, 6).await.unwrap();
        let discarded = status == 422;
        assert_eq!((row.given_up.is_some(), row.settled.is_some()), (!discarded, discarded));
        let with_it = users(&world).iter().filter(|told| told.contains(&6)).map(Vec::len).collect();
        let with_it: Vec<usize> = with_it;
        let alone = if discarded { 1 } else { 3 };
        assert_eq!(with_it, [vec![10, 5, 2], vec![1; alone]].concat(), "{status}");
    }
}

#[tokio::test]
async fn a_client_that_is_gone_is_left_and_no_attempt_is_used_up() {
    let (mut world, subscription) = world(tens()).await;
    world.delivery.answer_next(HOOK, DeliveryOutcome::answered(410));
    put(&world, 0..4).await;
    world.start();
    world
        .until("suspended", async || {
            let read = world.calm.subscription(subscription.id).await.unwrap();
            read.status == SubscriptionStatus::Suspended
        })
        .await;
    assert_eq!(world.delivery.total(), 1);
    for id in 0..4 {
        assert_eq!(world.row(subscription.id, id).await.unwrap().attempts, 0);
    }
    world.flare.resume(subscription.id).await.unwrap();
    world.settled().await;
    let told: usize = users(&world)[1..].iter().map(Vec::len).sum();
    assert_eq!(told, 4);
}

#[tokio::test]
async fn a_client_that_asks_for_quiet_has_it() {
    let (mut world, _) = world(tens()).await;
    let mut later = DeliveryOutcome::answered(429);
    let retry_after = Some(RetryAfter::Delay(30 * SECOND));
    later.reply = Reply::Answered { status: 429, retry_after, excerpt: Bytes::new() };
    world.delivery.answer_next(HOOK, later);
    put(&world, 0..6).await;
    world.start();
    world.settled().await;
    let requests = world.delivery.requests();
    assert_eq!(users(&world)[0].len(), 6);
    assert!(requests[1..].iter().all(|it| it.at - requests[0].at >= 30 * SECOND));
    assert!(users(&world)[1..].iter().all(|told| told.len() <= 3), "{:?}", users(&world));
}

#[tokio::test]
async fn an_unknown_outcome_is_told_again_by_the_same_ids() {
    let (mut world, subscription) = world(tens()).await;
    let timeout = DeliveryOutcome::failed(FailureKind::Timeout, "no answer", true);
    world.delivery.answer_next(HOOK, timeout);
    let mut cut = saying("{\"failed\":[");
    cut.whole = false;
    world.delivery.answer_next(HOOK, cut);
    put(&world, 0..4).await;
    world.start();
    world.settled().await;
    let requests = world.delivery.requests();
    let mut ids = std::collections::HashMap::new();
    for request in &requests {
        for (user, id) in told(&request.request) {
            assert_eq!(*ids.entry(user).or_insert_with(|| id.clone()), id, "of {user}");
        }
    }
    assert_eq!(ids.len(), 4);
    let sizes: Vec<usize> = users(&world).iter().map(Vec::len).collect();
    assert_eq!(sizes, [4, 2, 2, 1, 1], "halved where it is unknown");
    for id in 0..4 {
        assert_eq!(world.row(subscription.id, id).await.unwrap().attempts, 0);
    }
}

#[tokio::test]
async fn the_same_set_has_the_same_id_after_a_crash_and_as_a_single_one() {
    let (mut world, _) = world(tens()).await;
    world.delivery.hang(HOOK);
    put(&world, 0..5).await;
    world.start();
    world.until("in flight", async || world.delivery.in_flight() == 1).await;
    world.crash().await;
    world.delivery.release(HOOK);
    world.delivery.answer_next(HOOK, DeliveryOutcome::answered(200));
    world.start();
    world.settled().await;
    let requests = world.delivery.requests();
    let (first, again) = (&requests[0].request, &requests[1].request);
    assert_eq!(users(&world)[0], users(&world)[1]);
    assert_eq!(webhook_id(first), webhook_id(again));
    // One that fails alone is a request of one each time, and the same one.
    world.delivery.answer_next(HOOK, DeliveryOutcome::answered(500));
    world.put(7, 1).await;
    world.settled().await;
    let requests = world.delivery.requests();
    let [.., failed, taken] = &requests[..] else { panic!() };
    assert_eq!(users(&world).last().unwrap(), &[7]);
    assert_eq!(webhook_id(&failed.request), webhook_id(&taken.request));
    assert_ne!(webhook_id(&taken.request), webhook_id(first));
}

#[tokio::test]
async fn the_rate_counts_requests() {
    let (mut world, _) = world(tens().rate(1, 10 * SECOND).concurrency(8)).await;
    put(&world, 0..40).await;
    world.start();
    world.settled().await;
    let requests = world.delivery.requests();
    assert_eq!(requests.len(), 4, "{:?}", users(&world));
    assert!(requests.windows(2).all(|pair| pair[1].at - pair[0].at >= 10 * SECOND));
}

#[tokio::test]
async fn changes_gather_for_as_long_as_the_client_waits() {
    let batch = BatchOptions::of(10).wait(2 * SECOND);
    let (mut world, _) = world(tens().batch(batch)).await;
    world.start();
    world.pass(SECOND).await;
    let start = world.clock.now();
    for id in 0..4 {
        world.put(id, 1).await;
        world.pass(SECOND / 4).await;
    }
    world.settled().await;
    let requests = world.delivery.requests();
    assert_eq!(users(&world), [[0, 1, 2, 3]]);
    let waited = requests[0].at - start;
    assert!(waited >= 2 * SECOND && waited < 3 * SECOND, "{waited:?}");
    // As many as it takes do not wait.
    let start = world.clock.now();
    put(&world, 10..20).await;
    world.settled().await;
    assert_eq!(users(&world)[1].len(), 10);
    assert!(world.delivery.requests()[1].at - start < SECOND);
}

#[tokio::test]
async fn one_alone_is_told_after_the_wait_at_the_latest() {
    let (mut world, _) = world(tens().batch(BatchOptions::of(10).wait(5 * SECOND))).await;
    world.start();
    world.pass(SECOND).await;
    let start = world.clock.now();
    // It changes all the time, and is told in its newest version.
    for rev in 1..=30 {
        world.put(1, rev).await;
        world.pass(SECOND / 5).await;
    }
    world.settled().await;
    let requests = world.delivery.requests();
    let waited = requests[0].at - start;
    assert!(waited >= 5 * SECOND && waited <= 5 * SECOND + SECOND / 2, "{waited:?}");
    let body: Value = serde_json::from_slice(&requests[0].request.body).unwrap();
    assert!(body["notifications"][0]["revision"].as_i64().unwrap() >= 23, "{body}");
}

#[tokio::test]
async fn a_pause_in_between_holds_all_of_them() {
    let (mut world, subscription) =
        world(tens().batch(BatchOptions::of(10).wait(2 * SECOND))).await;
    world.start();
    world.pass(SECOND).await;
    put(&world, 0..3).await;
    world.pass(SECOND).await;
    world.flare.pause(subscription.id).await.unwrap();
    world.pass(60 * SECOND).await;
    assert_eq!(world.delivery.total(), 0);
    world.flare.resume(subscription.id).await.unwrap();
    world.settled().await;
    assert_eq!(users(&world), [[0, 1, 2]]);
}

#[tokio::test]
async fn one_that_no_longer_wants_many_is_told_of_one_at_a_time() {
    let (mut world, subscription) =
        world(tens().batch(BatchOptions::of(10).wait(5 * SECOND))).await;
    world.start();
    world.pass(SECOND).await;
    put(&world, 0..3).await;
    world.pass(SECOND).await;
    let single = SubscriptionSpec::post("http://a.example/{id}");
    world.flare.replace_subscription(subscription.id, single).await.unwrap();
    world.settled().await;
    let requests = world.delivery.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(header(&request.request, "flare-action"), Some("create"));
        let body: Value = serde_json::from_slice(&request.request.body).unwrap();
        assert!(body.get("notifications").is_none(), "{body}");
    }
}

#[tokio::test]
async fn a_client_that_is_down_is_probed_by_one() {
    let (mut world, _) = world(tens().concurrency(1)).await;
    world.delivery.answer(HOOK, DeliveryOutcome::answered(503));
    put(&world, 0..200).await;
    world.start();
    world.pass(20 * SECOND).await;
    let sizes: Vec<usize> = users(&world).iter().map(Vec::len).collect();
    assert_eq!(sizes[0], 10);
    assert!(sizes.len() > 6 && sizes[5..].iter().all(|size| *size == 1), "{sizes:?}");
    world.delivery.answer(HOOK, DeliveryOutcome::answered(200));
    world.settled().await;
    let after: Vec<usize> = users(&world).iter().map(Vec::len).skip(sizes.len()).collect();
    assert!(after.iter().filter(|size| **size == 10).count() > 10, "{after:?}");
}
