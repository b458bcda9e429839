//! How long a version is tried.

use std::time::Duration;

use flare_core::model::DeathReason;
use flare_core::port::{DeliveryOutcome, RetryAfter};

use super::sim::{Sim, every, hook, wait};

#[tokio::test]
async fn a_version_expires_after_its_ttl_with_a_last_attempt_at_the_end() {
    let sim = Sim::start().await;
    let spec = hook("a").retry(every(40, 100)).ttl(Duration::from_secs(100));
    let subscription = sim.subscribe(spec).await;
    sim.client("a", DeliveryOutcome::answered(404));
    let start = sim.now();
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(99)).await;
    assert!(sim.row(subscription.id, 0).await.dead.is_none());
    sim.pass(Duration::from_secs(2)).await;
    let dead = sim.row(subscription.id, 0).await.dead.unwrap();
    assert_eq!((dead.reason, dead.last_status), (DeathReason::Expired, Some(404)));
    assert_eq!(sim.since(start).last().unwrap().0 / 1_000, 100);
}

#[tokio::test]
async fn nothing_expires_while_it_is_paused_or_held_and_counting_starts_anew_afterwards() {
    let sim = Sim::start().await;
    let spec = hook("a").retry(every(10, 100)).ttl(Duration::from_secs(100));
    let subscription = sim.subscribe(spec).await;
    sim.client("a", DeliveryOutcome::answered(404));
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(60)).await;
    sim.flare.pause(subscription.id).await.unwrap();
    sim.pass(Duration::from_secs(10_000)).await;
    sim.flare.resume(subscription.id).await.unwrap();
    sim.pass(Duration::from_secs(60)).await;
    assert!(sim.row(subscription.id, 0).await.dead.is_none(), "the pause did not count");
    sim.client("a", wait(429, RetryAfter::Delay(Duration::from_secs(5_000))));
    sim.pass(Duration::from_secs(100)).await;
    sim.client("a", DeliveryOutcome::answered(404));
    sim.pass(Duration::from_secs(4_970)).await;
    assert!(sim.row(subscription.id, 0).await.dead.is_none(), "nor did the hold");
    sim.pass(Duration::from_secs(120)).await;
    assert_eq!(sim.row(subscription.id, 0).await.dead.unwrap().reason, DeathReason::Expired);
}

#[tokio::test]
async fn the_configured_maximum_caps_every_ttl() {
    let mut settings = super::sim::patient();
    settings.max_ttl = Duration::from_secs(50);
    let sim = Sim::with(settings).await;
    let long = hook("a").retry(every(20, 100)).ttl(Duration::from_secs(10_000));
    let long = sim.subscribe(long).await;
    let none = sim.subscribe(hook("b").retry(every(20, 100))).await;
    sim.client("a", DeliveryOutcome::answered(404));
    sim.client("b", DeliveryOutcome::answered(404));
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(55)).await;
    for subscription in [long, none] {
        let dead = sim.row(subscription.id, 0).await.dead.unwrap();
        assert_eq!(dead.reason, DeathReason::Expired);
    }
}

#[tokio::test]
async fn newer_content_resets_the_count_but_never_brings_the_next_attempt_forward() {
    let sim = Sim::start().await;
    let subscription = sim.subscribe(hook("a").retry(every(100, 1))).await;
    sim.client("a", DeliveryOutcome::answered(404));
    let start = sim.now();
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(50)).await;
    sim.put(0, 2).await;
    sim.pass(Duration::from_secs(49)).await;
    assert_eq!(sim.since(start).len(), 1);
    // With jitter up to 120 s; then version 2 has used one of its two attempts.
    sim.pass(Duration::from_secs(25)).await;
    assert_eq!(sim.since(start).len(), 2);
    let row = sim.row(subscription.id, 0).await;
    assert_eq!((row.attempts, row.dead.is_none()), (1, true));
    sim.pass(Duration::from_secs(125)).await;
    let dead = sim.row(subscription.id, 0).await.dead.unwrap();
    assert_eq!((dead.reason, dead.attempts), (DeathReason::Exhausted, 2));
}
