//! `Retry-After` holds the whole subscription, and only it.

use std::time::Duration;

use flare_core::port::{DeliveryOutcome, RetryAfter};

use super::sim::{Sim, every, hook, wait};

#[tokio::test]
async fn retry_after_holds_every_document_and_lane_of_the_subscription_and_nobody_else() {
    let sim = Sim::start().await;
    sim.subscribe(hook("busy").lanes(4).concurrency(4).retry(every(1, 9))).await;
    sim.subscribe(hook("calm")).await;
    sim.client("busy", wait(429, RetryAfter::Delay(Duration::from_secs(120))));
    let start = sim.now();
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(1)).await;
    sim.client_is_well("busy");
    for id in 1..20 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(110)).await;
    let early = sim.since(start);
    let busy = |told: &[(u128, String)]| told.iter().filter(|it| it.1.contains("busy")).count();
    assert_eq!(busy(&early), 1, "held: {early:?}");
    assert_eq!(early.len() - 1, 20, "the other client is not");
    sim.pass(Duration::from_secs(20)).await;
    assert_eq!(busy(&sim.since(start)), 21);
}

#[tokio::test]
async fn a_hold_survives_the_runtime_and_gets_later_only() {
    let mut sim = Sim::start().await;
    let slow = hook("busy").retry(every(1, 9));
    let subscription = sim.subscribe(slow).await;
    let until = sim.now() + Duration::from_secs(7_200);
    sim.client("busy", wait(503, RetryAfter::At(until)));
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(1)).await;
    let status = sim.row(subscription.id, 0).await;
    assert_eq!((status.attempts, status.due >= until), (1, true));
    sim.client_is_well("busy");
    sim.restart().await;
    let restarted = sim.now();
    sim.put(1, 1).await;
    sim.pass(until - sim.now() - Duration::from_secs(1)).await;
    assert_eq!(sim.since(restarted), [], "the new owner knows of it");
    sim.pass(Duration::from_secs(3)).await;
    assert_eq!(sim.since(restarted).len(), 2);
}

#[tokio::test]
async fn a_wish_beyond_the_limit_is_cut_and_without_the_header_there_is_no_hold() {
    let mut settings = super::sim::patient();
    settings.hold_limit = Duration::from_secs(60);
    let sim = Sim::with(settings).await;
    sim.subscribe(hook("busy").retry(every(1, 9))).await;
    sim.client("busy", wait(429, RetryAfter::Delay(Duration::from_secs(1 << 40))));
    let start = sim.now();
    sim.put(0, 1).await;
    sim.pass(Duration::from_secs(59)).await;
    assert_eq!(sim.since(start).len(), 1);
    sim.client("busy", DeliveryOutcome::answered(429));
    sim.pass(Duration::from_secs(2)).await;
    let later = sim.now();
    sim.put(1, 1).await;
    sim.pass(Duration::from_millis(100)).await;
    let told = sim.since(later).into_iter().any(|(_, url)| url.ends_with("/1/1"));
    assert!(told, "no hold any more");
}
