//! A client whose machine is down is asked one thing at a time, ever more rarely.

use std::time::Duration;

use flare_core::port::{DeliveryOutcome, FailureKind};

use super::sim::{Sim, every, hook};

fn down() -> DeliveryOutcome {
    DeliveryOutcome::failed(FailureKind::Connect, "connection refused", false)
}

#[tokio::test]
async fn probes_go_one_at_a_time_after_one_second_doubling_to_sixty() {
    let sim = Sim::start().await;
    let subscription = sim.subscribe(hook("ill").concurrency(5).retry(every(1, 50))).await;
    sim.client("ill", down());
    let start = sim.now();
    for id in 0..100 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(400)).await;
    let seconds: Vec<u128> = sim.since(start).iter().map(|it| it.0 / 1_000).collect();
    assert_eq!(seconds, [0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]);
    // What was never asked about used up nothing.
    let mut attempts = Vec::new();
    for id in 0..100 {
        attempts.push(sim.row(subscription.id, id).await.attempts);
    }
    assert_eq!(attempts.iter().sum::<u32>(), 16, "{attempts:?}");
    assert!(attempts.iter().all(|used| *used <= 1), "{attempts:?}");

    sim.client_is_well("ill");
    let well = sim.now();
    sim.pass(Duration::from_secs(62)).await;
    assert_eq!(sim.since(well).len(), 100, "one success, and everything goes");
}

#[tokio::test]
async fn a_new_owner_goes_on_probing() {
    let mut sim = Sim::start().await;
    sim.subscribe(hook("ill").retry(every(1, 50))).await;
    sim.client("ill", down());
    for id in 0..100 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(40)).await;
    let before = sim.delivery.total();
    sim.restart().await;
    sim.pass(Duration::from_secs(100)).await;
    let probes = sim.delivery.total() - before;
    assert!((1..=3).contains(&probes), "{probes}");
}

#[tokio::test]
async fn probes_never_come_before_the_policy_and_other_failures_begin_none() {
    let sim = Sim::start().await;
    sim.subscribe(hook("ill").retry(every(300, 50))).await;
    sim.subscribe(hook("odd").retry(every(300, 50))).await;
    sim.client("ill", down());
    sim.client("odd", DeliveryOutcome::answered(404));
    let start = sim.now();
    for id in 0..5 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(290)).await;
    assert_eq!(sim.since(start).len(), 10, "five each, and nothing before the policy");
    sim.pass(Duration::from_secs(100)).await;
    let of = |host: &str| sim.since(start).iter().filter(|it| it.1.contains(host)).count();
    assert_eq!(of("odd"), 10, "404 is no sign of a machine that is down");
    assert!(of("ill") > 5, "{:?}", sim.since(start));
}
