//! Pause, resume, suspension and replacement of subscriptions that are at work.

use std::sync::Arc;
use std::time::Duration;

use flare_core::ErrorKind;
use flare_core::EventKind;
use flare_core::model::{Subscription, SubscriptionStatus};
use flare_core::port::{DeliveryOutcome, FailureKind, SubscriptionStore};

use super::sim::{Sim, every, hook};
use crate::wall_clock::SetClock;

#[tokio::test]
async fn what_changes_while_it_is_paused_arrives_coalesced_after_it_is_resumed() {
    let sim = Sim::start().await;
    let subscription = sim.subscribe(hook("a")).await;
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(1)).await;
    let paused = sim.flare.pause(subscription.id).await.unwrap();
    assert_eq!(paused.status, SubscriptionStatus::Paused);
    assert!(paused.generation > subscription.generation);
    assert_eq!(sim.flare.pause(subscription.id).await.unwrap(), paused, "twice is once");
    let start = sim.now();
    for rev in 2..50 {
        sim.put(0, rev).await;
        sim.put(1, rev).await;
    }
    sim.pass(Duration::from_secs(3_600)).await;
    assert_eq!(sim.since(start), [], "held");
    let mut events = sim.flare.events();
    let resumed = sim.flare.resume(subscription.id).await.unwrap();
    assert_eq!(resumed.status, SubscriptionStatus::Active);
    assert_eq!(events.next().await.unwrap().kind, EventKind::Resumed);
    sim.pass(Duration::from_secs(2)).await;
    let mut told: Vec<String> = sim.since(start).into_iter().map(|it| it.1).collect();
    told.sort();
    assert_eq!(told, ["http://a/0/49", "http://a/1/49"]);
    assert_eq!(sim.flare.resume(subscription.id).await.unwrap().generation, resumed.generation);
}

// No turn for anybody between the pause and the put: nobody has told the lane yet.
#[tokio::test]
async fn a_change_accepted_after_pause_returned_is_not_sent() {
    let sim = Sim::start().await;
    let subscription = sim.subscribe(hook("a")).await;
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(1)).await;
    let start = sim.now();
    sim.flare.pause(subscription.id).await.unwrap();
    sim.put(0, 2).await;
    sim.pass(Duration::from_secs(100)).await;
    assert_eq!(sim.since(start), []);
}

#[tokio::test]
async fn a_change_accepted_after_a_replacement_uses_it_and_what_is_in_flight_finishes_as_it_was() {
    let sim = Sim::start().await;
    let subscription = sim.subscribe(hook("old").concurrency(2)).await;
    sim.delivery.hang("http://old/0/1");
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(1)).await;
    let replaced = sim.flare.replace_subscription(subscription.id, hook("new")).await.unwrap();
    assert_eq!((replaced.id, replaced.created_at), (subscription.id, subscription.created_at));
    sim.put(1, 1).await;
    sim.put(0, 2).await;
    sim.delivery.release("http://old/0/1");
    sim.pass(Duration::from_secs(2)).await;
    let told: Vec<String> = sim.delivery.requests().into_iter().map(|it| it.request.url).collect();
    assert_eq!(told[0], "http://old/0/1");
    assert!(told[1..].iter().all(|url| url.starts_with("http://new/")), "{told:?}");
    assert_eq!(told.len(), 3);
    // Rows are kept: the client is known to hold document 0.
    let last = sim.delivery.requests().into_iter().find(|it| it.request.url == "http://new/0/2");
    assert_eq!(last.unwrap().request.action.as_str(), "update");
}

#[tokio::test]
async fn gone_suspends_keeps_the_reason_and_uses_up_no_attempt() {
    let sim = Sim::start().await;
    let subscription = sim.subscribe(hook("a").retry(every(1, 0))).await;
    sim.client("a", DeliveryOutcome::answered(410));
    let mut events = sim.flare.events();
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(1)).await;
    let suspended = sim.flare.subscription(subscription.id).await.unwrap();
    assert_eq!(suspended.status, SubscriptionStatus::Suspended);
    assert!(suspended.reason.as_deref().unwrap().contains("410"), "{suspended:?}");
    let kinds: Vec<EventKind> =
        std::iter::from_fn(|| events.try_next()).map(|it| it.kind).collect();
    assert!(
        kinds
            .iter()
            .any(|it| matches!(it, EventKind::Suspended { reason } if reason.contains("410"))),
        "{kinds:?}"
    );
    let row = sim.row(subscription.id, 0).await;
    assert_eq!((row.attempts, row.dead, row.given_up), (0, None, None));
    sim.put(0, 2).await;
    sim.put(1, 1).await;
    sim.pass(Duration::from_secs(86_400)).await;
    assert_eq!(sim.delivery.total(), 1, "nothing is sent to whoever wants nothing");

    sim.client_is_well("a");
    sim.flare.resume(subscription.id).await.unwrap();
    sim.pass(Duration::from_secs(2)).await;
    assert_eq!(sim.delivery.total(), 3);
}

#[tokio::test]
async fn a_client_that_only_fails_is_suspended_after_the_time_and_due_at_once_when_resumed() {
    let mut settings = super::sim::patient();
    settings.suspend_after = Duration::from_secs(3_600);
    let mut sim = Sim::with(settings).await;
    let subscription = sim.subscribe(hook("a").retry(every(500, 50))).await;
    sim.client("a", DeliveryOutcome::answered(500));
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(1_800)).await;
    // Not only failing: counting starts anew.
    sim.client_is_well("a");
    sim.put(1, 1).await;
    sim.pass(Duration::from_secs(600)).await;
    sim.client("a", DeliveryOutcome::answered(404));
    sim.put(2, 1).await;
    sim.pass(Duration::from_secs(1_500)).await;
    sim.restart().await;
    let status = sim.flare.subscription(subscription.id).await.unwrap().status;
    assert_eq!(status, SubscriptionStatus::Active);
    sim.pass(Duration::from_secs(3_200)).await;
    let suspended = sim.flare.subscription(subscription.id).await.unwrap();
    assert_eq!(suspended.status, SubscriptionStatus::Suspended, "remembered over the restart");
    assert!(suspended.reason.as_deref().unwrap().contains("404"), "{suspended:?}");

    sim.client_is_well("a");
    let start = sim.now();
    sim.flare.resume(subscription.id).await.unwrap();
    sim.pass(Duration::from_secs(2)).await;
    assert_eq!(sim.since(start).len(), 1, "its retry was minutes away");
    let active = sim.flare.subscription(subscription.id).await.unwrap();
    assert_eq!((active.status, active.reason), (SubscriptionStatus::Active, None));
}

#[tokio::test]
async fn pause_while_preparing_ends_as_paused() {
    let sim = Sim::start().await;
    let known = sim.subscribe(hook("other")).await;
    // As it stands in the store while somebody creates it.
    let id = flare_core::model::SubscriptionId::from_bytes([7; 16]);
    let spec = hook("a").build().unwrap();
    let new = Subscription::new(id, known.resource, spec, sim.now());
    sim.stores.repository().insert_subscription(new, 10).await.unwrap();
    let paused = sim.flare.pause(id).await.unwrap();
    assert_eq!(paused.status, SubscriptionStatus::Paused);
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(300)).await;
    assert_eq!(sim.delivery.total(), 1, "the other one's");
    assert_eq!(sim.flare.subscription(id).await.unwrap().status, SubscriptionStatus::Paused);
}

#[tokio::test]
async fn what_a_creation_asked_for_is_not_lost_by_a_pause_while_preparing() {
    let sim = Sim::start().await;
    let known = sim.subscribe(hook("other")).await;
    for number in 0..3 {
        sim.put(number, 1).await;
    }
    sim.pass(Duration::from_secs(1)).await;
    // Its creator stored it, and died.
    let id = flare_core::model::SubscriptionId::from_bytes([7; 16]);
    let spec = hook("a").backfill(true).build().unwrap();
    let new = Subscription::new(id, known.resource, spec, sim.now());
    sim.stores.repository().insert_subscription(new, 10).await.unwrap();
    sim.flare.pause(id).await.unwrap();
    sim.pass(Duration::from_secs(300)).await;
    assert_eq!(sim.delivery.total(), 3, "the other one's");
    sim.flare.resume(id).await.unwrap();
    sim.pass(Duration::from_secs(60)).await;
    assert_eq!(sim.delivery.total(), 6, "what was there before");
}

#[tokio::test]
async fn a_pause_while_preparing_takes_back_what_has_lost_its_resource() {
    let sim = Sim::start().await;
    let known = sim.subscribe(hook("other")).await;
    let resource = known.resource;
    sim.flare.delete_subscription(known.id).await.unwrap();
    sim.pass(Duration::from_secs(3_600)).await;
    // Its creator stored it when the resource was being deleted, and died.
    sim.flare.delete_resource(resource).await.unwrap();
    let id = flare_core::model::SubscriptionId::from_bytes([7; 16]);
    let new = Subscription::new(id, resource, hook("a").build().unwrap(), sim.now());
    sim.stores.repository().insert_subscription(new, 10).await.unwrap();
    let error = sim.flare.pause(id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(sim.flare.subscription(id).await.is_err(), "it is gone");
}

#[tokio::test]
async fn unknown_ones_and_wrong_replacements_are_refused_with_the_field() {
    let sim = Sim::start().await;
    let a = sim.subscribe(hook("a")).await;
    sim.subscribe(hook("b")).await;
    let unknown = flare_core::model::SubscriptionId::from_bytes([7; 16]);
    for refused in [
        sim.flare.pause(unknown).await,
        sim.flare.resume(unknown).await,
        sim.flare.replace_subscription(unknown, hook("x")).await,
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    }
    for (spec, kind, named) in [
        (hook("b"), ErrorKind::Conflict, "endpoint.url"),
        (hook("a").header("x", "{nobody}"), ErrorKind::Invalid, "nobody"),
    ] {
        let error = sim.flare.replace_subscription(a.id, spec).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    assert_eq!(sim.flare.subscription(a.id).await.unwrap(), a, "nothing changed");
}

#[tokio::test]
async fn whoever_read_an_older_generation_changes_nothing() {
    let sim = Sim::start().await;
    let first = sim.subscribe(hook("a")).await;
    let replaced = sim.flare.replace_subscription_at(first.id, first.generation, hook("b"));
    let replaced = replaced.await.unwrap();
    for late in [
        sim.flare.replace_subscription_at(first.id, first.generation, hook("c")).await.err(),
        sim.flare.delete_subscription_at(first.id, first.generation).await.err(),
    ] {
        let error = late.unwrap();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some("generation")));
    }
    assert_eq!(sim.flare.subscription(first.id).await.unwrap(), replaced);
    sim.flare.delete_subscription_at(first.id, replaced.generation).await.unwrap();
    let gone = sim.flare.delete_subscription_at(first.id, replaced.generation).await;
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_resumption_counts_whatever_the_clock_shows_of_whoever_asks_for_it() {
    let sim = Sim::start().await;
    let spec = hook("down.example").concurrency(5).retry(every(1, 50));
    let subscription = sim.subscribe(spec).await;
    let refused = DeliveryOutcome::failed(FailureKind::Connect, "connection refused", false);
    sim.client("down.example", refused);
    for id in 0..100 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(40)).await;
    let clock = Arc::new(SetClock::new(&sim.clock, -600));
    let (elsewhere, _) = sim.builder().clock(clock).build().unwrap();
    let mut before = None;
    for _ in 0..2 {
        elsewhere.pause(subscription.id).await.unwrap();
        sim.pass(Duration::from_secs(5)).await;
        let told = sim.delivery.total();
        let resumed = elsewhere.resume(subscription.id).await.unwrap().resumed_at;
        assert!(resumed > before, "each is later than the one before");
        before = resumed;
        sim.pass(Duration::from_millis(500)).await;
        let asked = sim.delivery.total() - told;
        assert_eq!(asked, 5, "what was wrong before counts no more: no single probe");
        sim.pass(Duration::from_secs(40)).await;
    }
}
