//! Several lanes, and another number of them.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_core::model::{DocumentKey, DocumentUrl, Generation, Revision, Spread, Version};
use flare_core::port::{DeliveryOutcome, RetryAfter, RowStore};

use super::sim::{Sim, hook, url, wait};

const MOMENT: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);

/// What each document was told last; fails if one was told something older, or the same again.
fn newest(sim: &Sim) -> BTreeMap<String, i64> {
    let mut newest: BTreeMap<String, i64> = BTreeMap::new();
    for told in sim.delivery.requests() {
        let mut parts = told.request.url.rsplit('/');
        let rev: i64 = parts.next().unwrap().parse().unwrap();
        let before = newest.insert(parts.next().unwrap().to_owned(), rev);
        assert!(before < Some(rev), "{} after {before:?}", told.request.url);
    }
    newest
}

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
        sim.flare.pause(subscription.id).await.unwrap();
        for id in 0..50 {
            sim.put(id, rev + 2).await;
        }
        sim.flare.replace_subscription(subscription.id, spec(lanes)).await.unwrap();
        sim.flare.resume(subscription.id).await.unwrap();
        sim.pass(Duration::from_secs(1)).await;
        sim.delivery.release(&hanging);
        sim.pass(Duration::from_secs(5)).await;
        sim.flare.settled(Duration::ZERO).await.unwrap();
    }
    let newest = newest(&sim);
    assert_eq!(newest.len(), 50);
    assert!(newest.values().all(|rev| *rev == 32), "{newest:?}");
}

#[tokio::test]
async fn another_number_of_lanes_waits_for_what_is_in_flight_and_for_nothing_else() {
    let sim = Sim::start().await;
    let spec = |lanes| hook("a").concurrency(8).lanes(lanes);
    let subscription = sim.subscribe(spec(1)).await;
    for (round, lanes) in [4, 2, 8, 1].into_iter().enumerate() {
        let rev = round as i64 * 10;
        let hanging = format!("http://a/{round}/{}", rev + 1);
        sim.delivery.hang(&hanging);
        for id in 0..50 {
            sim.put(id, rev + 1).await;
        }
        sim.pass(MOMENT).await;
        let before = sim.row(subscription.id, 20).await.epoch;
        assert_eq!(sim.delivery.in_flight(), 1);
        let told = sim.delivery.total();
        sim.flare.replace_subscription(subscription.id, spec(lanes)).await.unwrap();
        for id in 0..50 {
            sim.put(id, rev + 2).await;
        }
        sim.pass(SECOND).await;
        assert_eq!(sim.delivery.total(), told, "the lanes before are not at an end");
        sim.delivery.release(&hanging);
        sim.pass(MOMENT).await;
        sim.flare.settled(Duration::ZERO).await.unwrap();
        assert!(sim.row(subscription.id, 20).await.epoch > before, "under an epoch of their own");
        assert_eq!(sim.flare.node().lanes, lanes as usize);
    }
    assert!(newest(&sim).values().all(|rev| *rev == 32));
    // What lanes did that are no more still counts.
    sim.pass(Duration::from_secs(3)).await;
    let status = sim.flare.subscription_status(subscription.id).await.unwrap();
    let told = sim.delivery.total() as u64;
    assert_eq!((status.delivered, status.in_flight, status.lag), (told, 0, 0));

    // They go on under that epoch, not under the slot's, which their rows would refuse.
    sim.flare.pause(subscription.id).await.unwrap();
    sim.pass(MOMENT).await;
    sim.flare.resume(subscription.id).await.unwrap();
    sim.put(20, 50).await;
    sim.pass(Duration::from_secs(2)).await;
    assert_eq!(sim.row(subscription.id, 20).await.settled, Some(Version::live(50.into())));
}

#[tokio::test]
async fn a_runtime_that_dies_while_the_number_of_lanes_changes_leaves_it_to_the_next() {
    for step in 0..40 {
        let mut sim = Sim::start().await;
        let spec = |lanes| hook("a").concurrency(8).lanes(lanes);
        let subscription = sim.subscribe(spec(2)).await;
        sim.delivery.hang("http://a/0/1");
        for id in 0..10 {
            sim.put(id, 1).await;
        }
        sim.pass(MOMENT).await;
        sim.flare.replace_subscription(subscription.id, spec(5)).await.unwrap();
        // Before anybody hears of it, while the old ones end, while the new ones begin.
        for _ in 0..step {
            tokio::task::yield_now().await;
        }
        sim.delivery.release("http://a/0/1");
        for _ in 0..step % 7 {
            tokio::task::yield_now().await;
        }
        sim.restart().await;
        for id in 0..10 {
            sim.put(id, 2).await;
        }
        sim.pass(SECOND).await;
        sim.flare.settled(Duration::ZERO).await.unwrap();
        assert_eq!(sim.flare.node().lanes, 5, "{step}");
        for id in 0..10 {
            assert_eq!(sim.row(subscription.id, id).await.settled, Some(Version::live(2.into())));
        }
    }
}

#[tokio::test]
async fn a_client_that_wants_to_be_left_alone_is_by_lanes_of_another_number_too() {
    let sim = Sim::start().await;
    let spec = |lanes| hook("a").concurrency(8).lanes(lanes);
    let subscription = sim.subscribe(spec(2)).await;
    sim.client("a", wait(429, RetryAfter::Delay(Duration::from_secs(60))));
    sim.put(1, 1).await;
    sim.pass(SECOND).await;
    sim.client_is_well("a");
    let since = sim.now();
    for lanes in [5, 1, 3] {
        sim.flare.replace_subscription(subscription.id, spec(lanes)).await.unwrap();
        sim.pass(SECOND).await;
    }
    for id in 0..10 {
        sim.put(id, 2).await;
    }
    sim.pass(Duration::from_secs(50)).await;
    assert_eq!(sim.since(since), []);
    sim.pass(Duration::from_secs(20)).await;
    assert_eq!(sim.since(since).len(), 10);
}

#[tokio::test]
async fn a_client_that_is_probed_is_by_lanes_of_another_number_too() {
    let sim = Sim::start().await;
    let spec = |lanes| hook("a").concurrency(30).lanes(lanes);
    let subscription = sim.subscribe(spec(1)).await;
    sim.client("a", DeliveryOutcome::answered(500));
    for id in 0..20 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(10)).await;
    let since = sim.now();
    sim.flare.replace_subscription(subscription.id, spec(3)).await.unwrap();
    for id in 20..40 {
        sim.put(id, 1).await;
    }
    sim.pass(Duration::from_secs(10)).await;
    let probes = sim.since(since).len();
    assert!((1..=9).contains(&probes), "three lanes, a probe each now and then: {probes}");
    sim.client_is_well("a");
    sim.pass(Duration::from_secs(2 * 3_600)).await;
    sim.flare.settled(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_wake_up_that_goes_to_a_lane_of_the_former_number_is_soon_made_up_for() {
    let sim = Sim::start().await;
    for id in 0..20 {
        sim.put(id, 1).await;
    }
    sim.pass(SECOND).await;
    let spec = |lanes| hook("a").concurrency(8).lanes(lanes);
    let subscription = sim.subscribe(spec(1)).await;
    sim.flare.replace_subscription(subscription.id, spec(4)).await.unwrap();
    sim.pass(SECOND * 3).await;
    assert_eq!((sim.flare.node().lanes, sim.delivery.total()), (4, 0));
    // A spread that read the subscription before it was replaced writes its rows only now, and
    // whom it wakes is none of theirs.
    let row = |id| {
        Spread::new(
            subscription.id,
            Generation::new(1),
            DocumentKey::new(subscription.resource, DocumentUrl::parse(&url(id)).unwrap()),
            Version::live(Revision::new(1)),
        )
    };
    sim.stores.repository().spread_rows((0..20).map(row).collect()).await.unwrap();
    sim.pass(SECOND * 5).await;
    assert_eq!(sim.delivery.total(), 20);
}
