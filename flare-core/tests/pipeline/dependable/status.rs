//! What the status says of lanes at work, from any handle on the same stores.

use std::time::Duration;

use flare_core::model::SubscriptionStatus;
use flare_core::port::{DeliveryOutcome, RetryAfter};

use super::sim::{Sim, every, hook, wait};

#[tokio::test]
async fn another_handle_sees_what_the_lanes_did() {
    let sim = Sim::start().await;
    let spec = hook("a").lanes(2).concurrency(8).discard([409]).retry(every(500, 9));
    let subscription = sim.subscribe(spec).await;
    for id in 0..20 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(2)).await;
    let well_at = sim.now();
    sim.client("a", DeliveryOutcome::answered(409));
    sim.put(0, 2).await;
    sim.pass(Duration::from_secs(2)).await;
    sim.client("a", DeliveryOutcome::answered(404));
    sim.put(1, 2).await;
    sim.put(2, 2).await;
    sim.pass(Duration::from_secs(5)).await;
    sim.delivery.hang("http://a/3/2");
    sim.put(3, 2).await;
    sim.pass(Duration::from_secs(2)).await;

    let (other, _) = sim.builder().build().unwrap();
    let report = other.subscription_status(subscription.id).await.unwrap();
    assert_eq!(report.status, SubscriptionStatus::Active);
    assert_eq!((report.delivered, report.discarded, report.failed), (20, 1, 2));
    assert_eq!((report.lag, report.spreading, report.in_flight), (3, 0, 1));
    assert_eq!(report.oldest_pending.as_secs(), 7);
    assert!(report.last_success_at.unwrap() < well_at, "a refusal is no success");
    assert_eq!(report.last_error.as_deref(), Some("answered 404"));

    sim.delivery.release("http://a/3/2");
    sim.client("a", wait(503, RetryAfter::Delay(Duration::from_secs(3_600))));
    sim.put(4, 2).await;
    sim.pass(Duration::from_secs(1)).await;
    let held = other.subscription_status(subscription.id).await.unwrap();
    assert!(held.next_attempt_at.unwrap() >= sim.now() + Duration::from_secs(3_590), "{held:?}");
    sim.flare.pause(subscription.id).await.unwrap();
    sim.pass(Duration::from_secs(5)).await;
    let paused = other.subscription_status(subscription.id).await.unwrap();
    assert_eq!((paused.status, paused.in_flight), (SubscriptionStatus::Paused, 0));
    assert_eq!((paused.lag, paused.next_attempt_at), (4, None));
}
