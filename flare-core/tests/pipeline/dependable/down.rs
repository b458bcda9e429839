//! A client that was down for days.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_core::port::{DeliveryOutcome, FailureKind, Page, RowStore};

use super::sim::{Sim, hook};

#[tokio::test]
async fn after_two_days_down_a_client_gets_each_newest_version_once_and_nothing_is_dead() {
    const DOCUMENTS: u32 = 10_000;
    let sim = Sim::start().await;
    let subscription = sim.subscribe(hook("ill")).await;
    sim.client("ill", DeliveryOutcome::failed(FailureKind::Connect, "refused", false));
    for round in 0..4 {
        for id in 0..DOCUMENTS {
            sim.put(id, round + 1).await;
        }
        sim.pass(Duration::from_secs(12 * 3_600)).await;
    }
    sim.client_is_well("ill");
    let well = sim.now();
    // What was tried last may have to wait for its own turn, an hour and a fifth at most.
    sim.pass(Duration::from_secs(4_400)).await;
    sim.flare.settled(Duration::ZERO).await.unwrap();
    let mut told: BTreeMap<String, u32> = BTreeMap::new();
    for (_, url) in sim.since(well) {
        *told.entry(url).or_default() += 1;
    }
    assert_eq!(told.len(), DOCUMENTS as usize);
    for (url, times) in told {
        assert!(url.ends_with("/4") && times == 1, "{url} {times} times");
    }
    let dead = sim.stores.repository().dead_letters(subscription.id, Page::new(10, 0)).await;
    assert_eq!(dead.unwrap().total, 0);
}
