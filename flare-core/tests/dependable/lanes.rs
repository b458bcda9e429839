//! Several lanes, and another number of them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sim::{Sim, hook};

#[tokio::test]
async fn another_number_of_lanes_loses_and_reorders_nothing() {
    let sim = Sim::start().await;
    let spec = |lanes| hook("a").concurrency(8).lanes(lanes);
    let subscription = sim.subscribe(spec(1)).await;
    for (round, lanes) in [4, 2, 8, 1].into_iter().enumerate() {
        let rev = round as i64 * 10;
        for id in 0..50 {
            sim.put(id, rev + 1).await;
        }
        // In flight while the lanes change.
        let hanging = format!("http://a/{round}/{}", rev + 1);
        sim.delivery.hang(&hanging);
        sim.pass(Duration::from_millis(50)).await;
        sim.flare.pause(&subscription.id).await.unwrap();
        for id in 0..50 {
            sim.put(id, rev + 2).await;
        }
        sim.flare.replace_subscription(&subscription.id, spec(lanes)).await.unwrap();
        sim.flare.resume(&subscription.id).await.unwrap();
        sim.pass(Duration::from_secs(1)).await;
        sim.delivery.release(&hanging);
        sim.pass(Duration::from_secs(5)).await;
        sim.flare.settled(Duration::ZERO).await.unwrap();
    }
    let mut newest: BTreeMap<String, i64> = BTreeMap::new();
    for told in sim.delivery.requests() {
        let mut parts = told.request.url.rsplit('/');
        let rev: i64 = parts.next().unwrap().parse().unwrap();
        let before = newest.insert(parts.next().unwrap().to_owned(), rev);
        assert!(before < Some(rev), "{} after {before:?}", told.request.url);
    }
    assert_eq!(newest.len(), 50);
    assert!(newest.values().all(|rev| *rev == 32), "{newest:?}");
}
